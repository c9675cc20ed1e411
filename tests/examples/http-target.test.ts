import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

import { expect, test } from 'vitest'

import { REPOSITORY } from '../house/run-tool.ts'

test('the example service works once per Idempotency-Key, and answers every call', async () => {
  const service = spawn(process.execPath, [join(REPOSITORY, 'examples/http-target.ts')], {
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  const output = createInterface(service.stdout).on('line', (line) => lines.push(line))
  await once(output, 'line')
  const [, port] = /"port":(\d+)/.exec(lines[0] ?? '') ?? []
  const call = (key: string): Promise<unknown> =>
    fetch(`http://127.0.0.1:${port}/digest`, {
      method: 'POST',
      headers: { 'idempotency-key': key },
      body: '{"list":"a"}',
    }).then((response) => response.json())

  const answers = [await call('sched:1:1000'), await call('sched:1:1000'), await call('sched:1:2000')]
  service.kill()
  await once(output, 'close')

  expect(answers).toEqual([{ sent: 3 }, { sent: 3 }, { sent: 3 }])
  expect(lines.slice(1)).toEqual(['digest for sched:1:1000: {"list":"a"}', 'digest for sched:1:2000: {"list":"a"}'])
})
