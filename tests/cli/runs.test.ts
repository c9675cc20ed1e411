import type { LiveEvent, RunWithAttempts, Schedule } from '@carillon/api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { CliRig } from './rig.ts'

let rig: CliRig

beforeAll(async () => {
  rig = await CliRig.start()
})

afterAll(() => rig[Symbol.asyncDispose]())

/** The first slot of this schedule is long after these tests. */
function make(name: string, path: Parameters<CliRig['target']>[0] = '/ok'): Promise<Schedule> {
  const cadence = { kind: 'cron' as const, expression: '0 9 1 1 *' }
  return rig.client.schedules.create({ name, cadence, target: { kind: 'http', url: rig.target(path) } })
}

describe('running a schedule now', () => {
  test('shows the run and does not wait without --wait', async () => {
    const { id } = await make('Now')

    const { stdout, stderr, exitCode } = await rig.run('schedules run', ['Now'])

    const [run] = (await rig.client.schedules.runs(id)).items
    expect(exitCode).toBe(0)
    expect(stdout).toContain(`Run            ${run?.id ?? ''}\n`)
    expect(stderr).toBe(`see its result with \`carillon runs get ${run?.id ?? ''}\`\n`)
  })

  test('with --wait waits for the end of the run and shows its attempts', async () => {
    await make('Waited for')

    const run = await rig.ask<RunWithAttempts>('schedules run', ['Waited for', '--wait', '--timeout', '20s'])

    expect(run).toMatchObject({
      state: 'succeeded',
      trigger: 'manual',
      attempts: [{ outcome: 'succeeded', result: { body: { sent: 3 } } }],
    })
  })

  test('ends with exit code 3 if the run did not succeed', async () => {
    await make('Fails', '/fail')

    const { stdout, exitCode } = await rig.run('schedules run', ['Fails', '--wait'])

    expect(exitCode).toBe(3)
    expect(stdout).toMatch(/State +failed\nWhat happened +The run failed after 1 attempt\. .*400/)
    expect(stdout).toMatch(/^ATTEMPT +OUTCOME +STARTED +TOOK +ANSWER\n1 +failed /m)
  })

  test('ends with exit code 4 after the timeout, and the run continues', async () => {
    const { id } = await make('Held', '/held/timeout')

    const { stdout, stderr, exitCode } = await rig.run('schedules run', [
      'Held',
      '--wait',
      '--timeout',
      '500ms',
      '--json',
    ])

    const [run] = (await rig.client.schedules.runs(id)).items
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 4 })
    expect(JSON.parse(stderr)).toEqual({
      error: { code: 'timed_out', message: `run ${run?.id ?? ''} was not over after 500 ms`, errors: [] },
    })
    expect(run?.completedAt).toBeNull()
  })

  test('ends with exit code 130 if it is interrupted while it waits', async () => {
    await make('Interrupted', '/held/interrupt')
    const waiting = rig.begin('schedules run', ['Interrupted', '--wait'])
    await waiting.shown(/waiting for run/, 'stderr')

    const { stdout, exitCode } = await waiting.stop('SIGINT')

    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 130 })
  })
})

describe('the runs of a schedule', () => {
  test('are listed once one has ended, after a wait', async () => {
    const { id } = await make('Listed', '/held/listed')
    const waiting = rig.begin('schedules runs', ['Listed', '--wait'])
    await waiting.shown(/^waiting for the slot \d{4}-01-01 09:00:00Z/, 'stderr')
    await rig.client.schedules.run(id)
    await rig.release('/held/listed')

    const { stdout, exitCode } = await waiting.ended

    expect(exitCode).toBe(0)
    expect(stdout).toMatch(
      /^SLOT +STATE +LATE +TOOK +ATTEMPTS +WHAT HAPPENED +ID\n.* succeeded +\d+ ms +\d+ ms +1 +The run succeeded\. +[\da-f-]{36}\n$/,
    )
  })

  test('are listed at once if one has ended, and exit code 3 means that the latest one did not succeed', async () => {
    const { id } = await make('Over', '/fail')
    await rig.ask('schedules run', ['Over', '--wait'])

    const { stdout, exitCode } = await rig.run('schedules runs', ['Over', '--wait', '--json'])

    expect(exitCode).toBe(3)
    expect(JSON.parse(stdout)).toEqual(await rig.client.schedules.runs(id))
  })

  test('can be awaited when the schedule is created', async () => {
    const made = await rig.run('schedules create', ['Once', '--in', '1s', '--url', rig.target('/ok'), '--wait'])

    expect(made.exitCode).toBe(0)
    expect(made.stdout).toMatch(/State +succeeded\nWhat happened +The run succeeded\.\n/)
    expect(made.stderr).toMatch(/^created [\da-f-]{36}, waiting for its first run…\n$/)
  })
})

describe('a single run', () => {
  test('is shown with its attempts, in the time zone of its schedule', async () => {
    const { id } = await make('Shown')
    const run = await rig.ask<RunWithAttempts>('schedules run', ['Shown', '--wait'])

    const { stdout } = await rig.run('runs get', [run.id])

    expect(stdout).toContain(`Schedule       ${id}\n`)
    expect(stdout).toMatch(/Trigger +manual\n/)
    expect(stdout).toMatch(/^1 +succeeded .* \{"status":200,/m)
  })

  test('has a transcript, which is empty if its target records nothing', async () => {
    const { id } = await make('Silent')
    const run = await rig.client.schedules.run(id)

    const followed = await rig.run('runs transcript', [run.id, '--follow'])
    const stored = await rig.run('runs transcript', [run.id, '--json'])

    expect(followed).toMatchObject({ stdout: '', stderr: 'the run is succeeded\n', exitCode: 0 })
    expect(stored).toMatchObject({ stdout: '', exitCode: 0 })
  })

  test('is cancelled', async () => {
    const { id } = await make('Cancelled', '/held/cancelled')
    const { id: runId } = await rig.client.schedules.run(id)
    await rig.called('/held/cancelled')

    const { stdout } = await rig.run('runs cancel', [runId])
    const again = await rig.run('runs get', ['01995c0e-0000-7000-8000-000000000001', '--json'])

    expect(stdout).toMatch(new RegExp(`^run ${runId} (was asked to stop|is cancelled)\n$`))
    expect(again.exitCode).toBe(1)
    expect(JSON.parse(again.stderr)).toMatchObject({ error: { code: 'run_not_found' } })
  })
})

test('events are printed one per line, live or after a given event', async () => {
  const before = await rig.tail()
  const people = rig.begin('events')
  await people.shown(/following/, 'stderr')
  const { id } = await make('FollowedEvent')
  await rig.client.schedules.pause(id, { reason: 'to be seen' })

  const lines = await people.shown(/paused +FollowedEvent.*\n/)
  const interrupted = await people.stop('SIGINT')
  const replayed = rig.begin('events', ['--json', '--after', before])
  const replay = await replayed.shown(/"change":"paused".*\n/)
  await replayed.stop('SIGINT')
  const counted = await rig.run('events', ['--json', '--count', '1', '--after', before])

  // Retries of other tests' runs may add events of their own in between.
  const ofSchedule = (text: string): string[] => text.split('\n').filter((line) => line.includes('FollowedEvent'))
  const events = ofSchedule(replay).map((line) => JSON.parse(line) as LiveEvent)
  expect(events.map(({ event, data }) => [event, 'change' in data ? data.change : ''])).toEqual([
    ['schedule', 'created'],
    ['schedule', 'paused'],
  ])
  expect(ofSchedule(lines)).toEqual([
    `schedule  created    FollowedEvent  schedule ${id}`,
    `schedule  paused     FollowedEvent  schedule ${id}`,
  ])
  expect(counted.exitCode).toBe(0)
  expect(counted.stdout.trimEnd().split('\n')).toHaveLength(1)
  expect(interrupted.exitCode).toBe(130)
})
