import type { Client } from '@carillon/api'
import type { Command } from 'commander'

import { runFields } from '../output/run-view.ts'
import { zoneOf } from '../output/schedule-view.ts'
import { connect } from '../service/connect.ts'
import { examples, type Define } from './define.ts'
import { addTranscript } from './run-transcript.ts'

export function addRunsCommand(program: Command, define: Define): void {
  const runs = program.command('runs').description('show, follow and cancel single runs')
  addGet(runs, define)
  addTranscript(runs, define)
  addCancel(runs, define)
}

function addGet(runs: Command, define: Define): void {
  const get = runs.command('get').description('show a run and its attempts').argument('<id>', 'id of the run')
  examples(get, 'carillon runs get 01995c0e-0000-7000-8000-000000000001')
  define(get, async ({ cli, args, show }) => {
    const client = connect(cli)
    const run = await client.runs.get(args[0] ?? '')
    const zone = await zoneOfRun(client, run.scheduleId)
    show(run, () => runFields(cli.terminal, run, zone))
  })
}

/** The time zone of the schedule of a run. UTC if the schedule cannot be read: a run stays readable after its schedule is deleted. */
async function zoneOfRun(client: Client, scheduleId: string): Promise<string> {
  try {
    return zoneOf(await client.schedules.get(scheduleId))
  } catch {
    return 'UTC'
  }
}

function addCancel(runs: Command, define: Define): void {
  const cancel = runs
    .command('cancel')
    .description('cancel a run: a waiting run ends at once, a running one is asked to stop')
    .argument('<id>', 'id of the run')
  examples(cancel, 'carillon runs cancel 01995c0e-0000-7000-8000-000000000001')
  define(cancel, async ({ cli, args, show }) => {
    const run = await connect(cli).runs.cancel(args[0] ?? '')
    const text = run.completedAt === null ? 'was asked to stop' : `is ${run.state}`
    show(run, () => [`run ${run.id} ${text}`])
  })
}
