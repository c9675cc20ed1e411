import type { Client } from '@carillon/api'
import type { Command } from 'commander'

import { connect } from '../connection.ts'
import { examples, type Define } from '../define.ts'
import { runFields } from '../output/run-view.ts'
import { zoneOf } from '../output/schedule-view.ts'

export function addRuns(program: Command, define: Define): void {
  const runs = program.command('runs').description('read and cancel single runs')
  const get = runs.command('get').description('show a run with its attempts').argument('<id>', 'its id')
  examples(get, 'carillon runs get 01995c0e-0000-7000-8000-000000000001')
  define(get, async ({ cli, args, show }) => {
    const client = connect(cli)
    const run = await client.runs.get(args[0] ?? '')
    const zone = await zoneOfRun(client, run.scheduleId)
    show(run, () => runFields(cli.terminal, run, zone))
  })

  const cancel = runs
    .command('cancel')
    .description('cancel a run: at once if it waits, through its target if it is under way')
    .argument('<id>', 'its id')
  examples(cancel, 'carillon runs cancel 01995c0e-0000-7000-8000-000000000001')
  define(cancel, async ({ cli, args, show }) => {
    const run = await connect(cli).runs.cancel(args[0] ?? '')
    const text = run.completedAt === null ? 'was asked to stop' : `is ${run.state}`
    show(run, () => [`run ${run.id} ${text}`])
  })
}

/** The runs of a schedule outlive it. */
async function zoneOfRun(client: Client, scheduleId: string): Promise<string> {
  try {
    return zoneOf(await client.schedules.get(scheduleId))
  } catch {
    return 'UTC'
  }
}
