import { describe, expect, test } from 'vitest'

import { Progress } from './progress.ts'
import type { Terminal } from './terminal.ts'

function terminal(canRedraw: boolean): { terminal: Terminal; written: string[] } {
  const written: string[] = []
  return {
    written,
    terminal: {
      writeOut: () => expect.unreachable('progress does not belong on standard output'),
      writeError: (text) => written.push(text),
      width: null,
      hasColor: false,
      canAsk: false,
      canRedraw,
    },
  }
}

describe('the progress of an import', () => {
  test('is a bar on a terminal, and is removed at the end', () => {
    const { terminal: screen, written } = terminal(true)
    const progress = new Progress(screen, 'importing', 2)

    progress.step()
    progress.step()
    progress.end()

    expect(written[0]).toBe(`\rimporting ${'█'.repeat(15)}${'░'.repeat(15)} 1/2`)
    expect(written[1]).toBe(`\rimporting ${'█'.repeat(30)} 2/2`)
    expect(written[2]).toMatch(/^\r +\r$/)
  })

  test('is one line per thousand steps without a terminal', () => {
    const { terminal: screen, written } = terminal(false)
    const progress = new Progress(screen, 'importing', 2500)

    for (let step = 0; step < 2500; step++) progress.step()
    progress.end()

    expect(written).toEqual(['importing: 1000 of 2500\n', 'importing: 2000 of 2500\n'])
  })
})
