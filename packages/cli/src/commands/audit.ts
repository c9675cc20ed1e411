import { LOST_SLOT_SHOWN_MS, type AuditReport, type Client } from '@carillon/api'
import { Option, type Command } from 'commander'

import { durationMs } from '../options/option-values.ts'
import { formatMs, formatRelative } from '../output/format-time.ts'
import { fieldLines, tableLines } from '../output/table.ts'
import { CliError } from '../process/cli-error.ts'
import type { Cli } from '../process/cli.ts'
import { connect } from '../service/connect.ts'
import { examples, type Define } from './define.ts'

const POLL_INTERVAL_MS = 500
const TIMEOUT_DEFAULT_MS = 60_000

type LatestAudit = NonNullable<AuditReport['latest']>
type Findings = AuditReport['findings']

interface AuditOptions {
  readonly run?: boolean
  readonly timeout: number
}

export function addAuditCommand(program: Command, define: Define): void {
  const audit = program
    .command('audit')
    .description('check that every due slot has a run, and that the stored runs are consistent')
    .option('--run', 'start an audit now and wait for it; needs the admin key')
    .addOption(
      new Option('--timeout <duration>', 'time limit of --run')
        .argParser(durationMs)
        .default(TIMEOUT_DEFAULT_MS, '60s'),
    )
  examples(audit, 'carillon audit', 'carillon audit --run --timeout 5m')
  define<AuditOptions>(audit, async ({ cli, options, show, note }) => {
    const client = connect(cli)
    const report = options.run === true ? await auditNow(cli, client, options.timeout) : await client.audit.get()
    show(report, () => reportLines(cli, report))
    if (report.latest === null) {
      note('no audit yet: start one with `carillon audit --run` and the admin key')
    }
    const findings = currentFindings(report, cli.clock.now())
    const others = countElsewhere(report, findings)
    if (others > 0) note(`findings in other projects: ${others}; \`carillon doctor\` names the projects`)
    return findings.length + others > 0 ? 'found' : 'ok'
  })
}

/** The event stream does not report audits, so the command polls. */
async function auditNow({ clock, signal }: Cli, client: Client, timeoutMs: number): Promise<AuditReport> {
  const { requestedAt } = await client.audit.request()
  const until = clock.now() + timeoutMs
  for (;;) {
    const report = await client.audit.get()
    if (report.latest?.isWhole === true && report.latest.startedAt >= requestedAt) return report
    if (clock.now() >= until) {
      throw new CliError('timed_out', `no worker completed an audit within ${formatMs(timeoutMs)}`, {
        advice: 'check that a worker is running (`carillon doctor`), or pass a longer --timeout',
      })
    }
    await clock.sleep(POLL_INTERVAL_MS, signal)
  }
}

/** The findings of the last audit, and the slots lost within a day. Older findings no longer describe the present state. */
function currentFindings({ latest, findings }: AuditReport, now: number): Findings {
  if (latest === null) return []
  const isRecentlyLost = ({ kind, isRepaired, seenAt }: Findings[number]): boolean =>
    kind === 'slot_lost' && isRepaired && Date.parse(seenAt) >= now - LOST_SLOT_SHOWN_MS
  return findings.filter((finding) => finding.seenAt >= latest.startedAt || isRecentlyLost(finding))
}

/** The number of findings in other projects; 0 without the admin key, because the report then has no totals. */
function countElsewhere({ latest }: AuditReport, own: Findings): number {
  return Math.max(0, (latest?.findings ?? 0) - own.length)
}

function reportLines({ terminal, clock }: Cli, report: AuditReport): string[] {
  const { latest, findings, auditedUntil } = report
  if (latest === null) return ['no audit yet']
  const own = currentFindings(report, clock.now())
  const summary = fieldLines(terminal, [
    ['Audited', `${latest.from} to ${latest.to}`],
    ['Audited until', auditedUntil === null ? '' : `${auditedUntil} (${formatRelative(auditedUntil, clock.now())})`],
    ['Completed', `${latest.completedAt} (${formatRelative(latest.completedAt, clock.now())})`],
    ['Schedules', countText(latest.schedules)],
    ['Slots', countText(latest.slots)],
    ['Unreadable schedules', countText(latest.unreadable || null)],
    ['Schedules partly checked', countText(latest.truncated || null)],
    ['Findings', findingsText(latest, own)],
  ])
  if (findings.length === 0) return summary
  const table = tableLines(
    terminal,
    [
      { title: 'FOUND', of: ({ foundAt }) => foundAt },
      { title: 'KIND', of: ({ kind }) => kind },
      { title: 'SLOT', of: ({ scheduledFor }) => scheduledFor ?? '-' },
      { title: 'REPAIRED', of: ({ isRepaired }) => (isRepaired ? 'yes' : 'no') },
      { title: 'DETAIL', of: ({ detail }) => detail, shrinksTo: 20 },
      { title: 'SCHEDULE', of: ({ scheduleId }) => scheduleId ?? '-', style: () => 'dim' },
    ],
    findings,
  )
  return [...summary, '', ...table]
}

/** Empty if the report does not contain the count. */
function countText(count: number | null): string {
  return count === null ? '' : String(count)
}

/** The totals of all projects if the report contains them, otherwise the counts of this project. */
function findingsText({ findings, repaired }: LatestAudit, own: Findings): string {
  if (findings !== null) return `${findings}, ${repaired ?? 0} repaired`
  return `${own.length} in this project, ${own.filter(({ isRepaired }) => isRepaired).length} repaired`
}
