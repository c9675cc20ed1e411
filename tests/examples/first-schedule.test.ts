import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { REPOSITORY, runTool } from '../house/run-tool.ts'

test('a first schedule is created and fires, and its run is in the ledger', async () => {
  const { exitCode, stdout } = await runTool(REPOSITORY, process.execPath, [
    join(REPOSITORY, 'examples/first-schedule.ts'),
  ])

  expect({ exitCode, lines: stdout.trim().split('\n') }).toEqual({
    exitCode: 0,
    lines: [
      'a cadence in words: At 09:00 on Monday through Friday, in Europe/Madrid',
      expect.stringMatching(/^created: Digest, due \S+Z$/) as string,
      expect.stringMatching(/^called: POST \/digest, key sched:[0-9a-f-]{36}:\d{13}$/) as string,
      expect.stringMatching(/^ledger: \S+Z succeeded, begun \d+ ms late$/) as string,
      'the schedule is completed: it has no further slot',
    ],
  })
})

test.each(['README.md', 'packages/core/README.md'])('%s shows lines of the program that is tested here', (page) => {
  const program = readFileSync(join(REPOSITORY, 'examples/first-schedule.ts'), 'utf8').split('\n')
  const [, shown = ''] = /```ts\n(.*?)```/s.exec(readFileSync(join(REPOSITORY, page), 'utf8')) ?? []

  const lines = shown.split('\n').filter(Boolean)
  expect(lines.length).toBeGreaterThan(3)
  expect(lines.filter((line) => !program.includes(line))).toEqual([])
})
