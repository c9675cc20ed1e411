import { styleText } from 'node:util'

export type Style = 'bold' | 'dim' | 'green' | 'red' | 'yellow' | 'cyan'

/** Text in a colour, where there are colours. */
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

/** The colour of a state: of a schedule, a run or a check. */
export function styleOfState(state: string): Style | undefined {
  return STATE_STYLES.get(state)
}
