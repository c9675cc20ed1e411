import { Option, type Command } from 'commander'

import { wholeNumber } from './option-values.ts'

export interface PageOptions {
  readonly limit?: number
  readonly cursor?: string
}

export function addPageOptions(command: Command): void {
  command
    .addOption(new Option('--limit <count>', 'so many at most, 1 to 200 (50)').argParser(wholeNumber))
    .option('--cursor <cursor>', 'go on after a page: its nextCursor')
}

export function pageQuery({ limit, cursor }: PageOptions): PageOptions {
  return { ...(limit === undefined ? {} : { limit }), ...(cursor === undefined ? {} : { cursor }) }
}

/** What a table does not say: that there is nothing, or more. */
export function notePage(
  { items, nextCursor }: { readonly items: readonly unknown[]; readonly nextCursor: string | null },
  note: (text: string) => void,
  whenEmpty: string,
): void {
  if (items.length === 0) note(whenEmpty)
  if (nextCursor !== null) note(`more: --cursor ${nextCursor}`)
}
