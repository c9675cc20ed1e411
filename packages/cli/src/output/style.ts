import { styleText } from 'node:util'

export type Style = 'bold' | 'dim' | 'green' | 'red' | 'yellow' | 'cyan'

/** Styles a text if the terminal has colours. */
export function styled(terminal: { readonly hasColor: boolean }, style: Style | undefined, text: string): string {
  return style === undefined || !terminal.hasColor ? text : styleText(style, text, { validateStream: false })
}

const STATE_STYLES: ReadonlyMap<string, Style> = new Map([
  ['active', 'green'],
  ['succeeded', 'green'],
  ['ok', 'green'],
  ['running', 'cyan'],
  ['pending', 'cyan'],
  ['paused', 'yellow'],
  ['skipped', 'yellow'],
  ['retrying', 'yellow'],
  ['cancelled', 'yellow'],
  ['warning', 'yellow'],
  ['failed', 'red'],
])

/** The colour of the state of a schedule, a run, an attempt or a check; undefined for none. */
export function styleOfState(state: string): Style | undefined {
  return STATE_STYLES.get(state)
}
