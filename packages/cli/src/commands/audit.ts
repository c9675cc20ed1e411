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
/** As `latest.findings` counts: the work of a lost slot was not done, though its line is written by now. */
const LOST_SHOWN_MS = 86_400_000

type LatestAudit = NonNullable<AuditReport['latest']>

interface AuditOptions {
  readonly run?: boolean
  readonly timeout: number
}

export function addAudit(program: Command, define: Define): void {
  const audit = program
    .command('audit')
    .description('show whether every slot that came due has its line in the ledger, and every run what it needs')
    .option('--run', 'have a worker audit now, and wait for it; with the key of the installation')
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
    if (report.latest === null) {
      note('there was no audit yet: `carillon audit --run` makes one, with the key of the installation')
    }
    const found = shownNow(report, cli.clock.now())
    const others = foundElsewhere(report, found)
    if (others > 0) note(`${others} of them are in other projects: \`carillon doctor\` says in which`)
    return found.length + others > 0 ? 'found' : 'ok'
  })
}

/** No event tells of an audit, so it is looked for. */
async function auditNow({ clock, signal }: Cli, client: Client, timeoutMs: number): Promise<AuditReport> {
  const { requestedAt } = await client.audit.request()
  const until = clock.now() + timeoutMs
  for (;;) {
    const report = await client.audit.get()
    if (report.latest?.isWhole === true && report.latest.startedAt >= requestedAt) return report
    if (clock.now() >= until) {
      throw new CliError('timed_out', `no worker had audited after ${formatMs(timeoutMs)}`, {
        advice: 'see that a worker is running (`carillon doctor`), or wait longer with --timeout',
      })
    }
    await clock.sleep(LOOK_EVERY_MS, signal)
  }
}

/** What the latest audit found, and slots that were lost within a day. Other findings of earlier audits say nothing of how things are. */
function shownNow({ latest, findings }: AuditReport, now: number): AuditReport['findings'] {
  if (latest === null) return []
  const isRecentlyLost = ({ kind, isRepaired, seenAt }: AuditReport['findings'][number]): boolean =>
    kind === 'slot_lost' && isRepaired && Date.parse(seenAt) >= now - LOST_SHOWN_MS
  return findings.filter((finding) => finding.seenAt >= latest.startedAt || isRecentlyLost(finding))
}

/** How many findings are not in the list, being of other projects; 0 where that is not told. */
function foundElsewhere({ latest }: AuditReport, found: AuditReport['findings']): number {
  return Math.max(0, (latest?.findings ?? 0) - found.length)
}

function reportLines({ terminal, clock }: Cli, report: AuditReport): string[] {
  const { latest, findings, auditedUntil } = report
  if (latest === null) return ['no audit yet']
  const found = shownNow(report, clock.now())
  const summary = fieldLines(terminal, [
    ['Audited', `${latest.from} to ${latest.to}`],
    ['Slots until', auditedUntil === null ? '' : `${auditedUntil} (${formatRelative(auditedUntil, clock.now())})`],
    ['Finished', `${latest.completedAt} (${formatRelative(latest.completedAt, clock.now())})`],
    ['Schedules', countText(latest.schedules)],
    ['Slots', countText(latest.slots)],
    ['Unreadable', countText(latest.unreadable || null)],
    ['Not wholly', countText(latest.truncated || null)],
    ['Findings', findingsText(latest, found)],
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

/** Nothing where it is not told. */
function countText(count: number | null): string {
  return count === null ? '' : String(count)
}

/** Over all projects, if that was told; else of one's own. */
function findingsText({ findings, repaired }: LatestAudit, found: AuditReport['findings']): string {
  if (findings !== null) return `${findings}, of which ${repaired ?? 0} repaired`
  const own = found.filter(({ isRepaired }) => isRepaired).length
  return `${found.length} in this project, of which ${own} repaired`
}
