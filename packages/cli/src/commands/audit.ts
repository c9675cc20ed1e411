import type { AuditReport, Client } from '@carillon/api'
import { Option, type Command } from 'commander'

import { CliError } from '../cli-error.ts'
import type { Cli } from '../cli.ts'
import { connect } from '../connection.ts'
import { examples, type Define } from '../define.ts'
import { durationMs } from '../option-values.ts'
import { formatMs, formatRelative } from '../output/format-time.ts'
import { fieldLines, tableLines } from '../output/table.ts'

const LOOK_EVERY_MS = 500
const TIMEOUT_DEFAULT_MS = 60_000

interface AuditOptions {
  readonly run?: boolean
  readonly timeout: number
}

export function addAudit(program: Command, define: Define): void {
  const audit = program
    .command('audit')
    .description('show whether every slot that came due has its line in the ledger')
    .option('--run', 'have a worker audit now, and wait for it')
    .addOption(
      new Option('--timeout <duration>', 'how long --run waits')
        .argParser(durationMs)
        .default(TIMEOUT_DEFAULT_MS, '60s'),
    )
  examples(audit, 'carillon audit', 'carillon audit --run --timeout 5m')
  define<AuditOptions>(audit, async ({ cli, options, show, note }) => {
    const client = connect(cli)
    const report = options.run === true ? await auditNow(cli, client, options.timeout) : await client.audit.get()
    show(report, () => reportLines(cli, report))
    if (report.latest === null) note('there was no audit yet: `carillon audit --run` makes one')
    return foundByLatest(report).length > 0 ? 'found' : 'ok'
  })
}

/** No event tells of an audit, so it is looked for. */
async function auditNow({ clock, signal }: Cli, client: Client, timeoutMs: number): Promise<AuditReport> {
  const { requestedAt } = await client.audit.request()
  const until = clock.now() + timeoutMs
  for (;;) {
    const report = await client.audit.get()
    if (report.latest !== null && report.latest.startedAt >= requestedAt) return report
    if (clock.now() >= until) {
      throw new CliError('timed_out', `no worker had audited after ${formatMs(timeoutMs)}`, {
        advice: 'see that a worker is running (`carillon doctor`), or wait longer with --timeout',
      })
    }
    await clock.sleep(LOOK_EVERY_MS, signal)
  }
}

/** Earlier audits keep what they found; that says nothing of how things are. */
function foundByLatest({ latest, findings }: AuditReport): AuditReport['findings'] {
  return latest === null ? [] : findings.filter(({ foundAt }) => foundAt >= latest.startedAt)
}

function reportLines({ terminal, clock }: Cli, { latest, findings }: AuditReport): string[] {
  if (latest === null) return ['no audit yet']
  const summary = fieldLines(terminal, [
    ['Audited', `${latest.from} to ${latest.to}`],
    ['Finished', `${latest.completedAt} (${formatRelative(latest.completedAt, clock.now())})`],
    ['Schedules', String(latest.schedules)],
    ['Slots', String(latest.slots)],
    ['Unreadable', latest.unreadable === 0 ? '' : String(latest.unreadable)],
    ['Not wholly', latest.truncated === 0 ? '' : String(latest.truncated)],
    ['Findings', `${latest.findings}, of which ${latest.repaired} repaired`],
  ])
  if (findings.length === 0) return summary
  const table = tableLines(
    terminal,
    [
      { title: 'FOUND', of: ({ foundAt }) => foundAt },
      { title: 'WHAT', of: ({ kind }) => kind },
      { title: 'SLOT', of: ({ scheduledFor }) => scheduledFor ?? '-' },
      { title: 'REPAIRED', of: ({ isRepaired }) => (isRepaired ? 'yes' : 'no') },
      { title: 'DETAIL', of: ({ detail }) => detail, shrinksTo: 20 },
      { title: 'SCHEDULE', of: ({ scheduleId }) => scheduleId ?? '-', style: () => 'dim' },
    ],
    findings,
  )
  return [...summary, '', ...table]
}
