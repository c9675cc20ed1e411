import { PAGE_SIZE } from '@carillon/api'
import { Option, type Command } from 'commander'

import { dropUndefined, wholeNumber } from './option-values.ts'

export interface PageOptions {
  readonly limit?: number
  readonly cursor?: string
}

export function addPageOptions(command: Command): void {
  const limit = `items per page, ${PAGE_SIZE.min} to ${PAGE_SIZE.max} (default: ${PAGE_SIZE.default})`
  command
    .addOption(new Option('--limit <count>', limit).argParser(wholeNumber))
    .option('--cursor <cursor>', 'show the page after this cursor (the nextCursor of the previous page)')
}

export function pageQuery({ limit, cursor }: PageOptions): PageOptions {
  return dropUndefined({ limit, cursor })
}

/** Tells the user what the table cannot show: that the list is empty, or that there are more pages. */
export function notePage(
  { items, nextCursor }: { readonly items: readonly unknown[]; readonly nextCursor: string | null },
  note: (text: string) => void,
  whenEmpty: string,
): void {
  if (items.length === 0) note(whenEmpty)
  if (nextCursor !== null) note(`next page: --cursor ${nextCursor}`)
}
