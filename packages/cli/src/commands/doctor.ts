import type { Command } from 'commander'

import { examples, type Define } from '../define.ts'
import { padText } from '../output/cut-text.ts'
import { harmlessText } from '../output/harmless-text.ts'
import { styled, styleOfState } from '../output/style.ts'
import { settingsFlags } from '../run-service.ts'

const STATUS_WIDTH = 'warning'.length

export function addDoctor(program: Command, define: Define): void {
  const doctor = program
    .command('doctor')
    .description('examine the database: schema, clocks, time zones, workers, waiting runs, audit')
  examples(doctor, 'carillon doctor', 'DATABASE_URL=postgres://carillon@db/carillon carillon doctor --json')
  define(doctor, async ({ cli, show }) => {
    const { examine, readSettings } = await import('@carillon/server')
    const checks = await examine(readSettings(cli.env, settingsFlags({}, cli)))
    show({ checks }, () =>
      checks.map(({ name, status, message }) => {
        const state = styled(cli.terminal, styleOfState(status), padText(status, STATUS_WIDTH))
        return `${state}  ${name}: ${harmlessText(message)}`
      }),
    )
    return checks.some(({ status }) => status === 'failed') ? 'found' : 'ok'
  })
}
