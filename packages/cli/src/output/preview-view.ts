import type { Preview } from '@carillon/api'

import { formatLocal, formatRelative } from './format-time.ts'
import { styled } from './style.ts'
import { tableLines } from './table.ts'
import type { Terminal } from './terminal.ts'

/** When something comes due, and what changes of the clocks do to it. */
export function previewLines(screen: Terminal, preview: Preview, timezone: string, now: number): string[] {
  const { description, slots, warnings } = preview
  const table = tableLines(
    screen,
    [
      { title: 'LOCAL', of: ({ scheduledFor }) => formatLocal(scheduledFor, timezone) },
      { title: 'UTC', of: ({ scheduledFor }) => scheduledFor },
      { title: '', of: ({ scheduledFor }) => formatRelative(scheduledFor, now) },
    ],
    slots,
  )
  return [
    styled(screen, 'bold', description),
    '',
    ...(slots.length === 0 ? ['It does not come due any more.'] : table),
    ...(warnings.length === 0 ? [] : ['']),
    ...warnings.map(({ message }) => styled(screen, 'yellow', message)),
  ]
}
