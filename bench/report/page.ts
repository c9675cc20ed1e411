import type { Check, Failure, Figure, Results, WorkRecord } from '../results.ts'
import type { WorkName } from '../work.ts'
import { chartsOf } from './charts.ts'
import { formatNumber } from './number.ts'
import { figureTables, markdownTable } from './table.ts'
import { WORK_TEXTS } from './works.ts'

const NOT_MEASURED = [
  'A target that takes time, or a network between the worker, its target and the database: everything is on one machine, ' +
    'so all that is measured shares its cores with its own database.',
  'A Postgres tuned for one of the systems: it runs with its default settings.',
  'Days of running: bloat, vacuum under load, failover, backups. The crash tests are in `tests/crash`.',
  'More than two workers, and more than one machine.',
  'Retries and runs asked for by hand, of the peers.',
  'What the systems do beside this work: BullMQ, pg-boss, DBOS and Graphile Worker are queues or workflow engines first.',
]

/** The contents of `RESULTS.md`. */
export function resultsPage(results: Results): string {
  const sections = [
    `<!-- Written by \`${results.command}\`. Do not edit: the next run writes it anew. -->`,
    '# Results',
    introduction(results),
    '## The figures to reach',
    checksTable(results.checks),
    ...wayTexts(results.checks),
    '## The machine and the versions',
    machineTable(results),
    ...results.works.map((work) => workSection(work, results)),
    '## What is not measured',
    NOT_MEASURED.map((line) => `- ${line}`).join('\n'),
    '## Who was measured, and how it was set up',
    ...results.subjects.map(subjectText),
  ]
  return `${sections.join('\n\n')}\n`
}

function introduction({ command, plan, startedAt, seconds, isComplete, machine }: Results): string {
  const lines = [
    `Written by \`${command}\` on ${startedAt.slice(0, 10)}, plan *${plan}*, in ${formatNumber(seconds / 60)} minutes, on ` +
      `${machine.cores} cores of ${machine.cpu}, ${formatNumber(machine.memoryGigabytes)} GB, ${machine.os}. The numbers of ` +
      'one run on one machine compare with each other and with nothing else. Each is the median of its rounds; the range ' +
      'over the rounds stands behind it. [README.md](README.md) says how to read them.',
  ]
  if (!isComplete) lines.push('**The run came to the end of its time: what is missing here was not measured.**')
  if (plan !== 'full') lines.push(`**This is the plan *${plan}*: its sizes are too small for the figures to reach.**`)
  return lines.join('\n\n')
}

function checksTable(checks: readonly Check[]): string {
  const reached = (isReached: boolean | null): string => (isReached === null ? '–' : isReached ? 'yes' : '**no**')
  return markdownTable(
    ['', 'what', 'wanted', 'measured', 'reached'],
    checks.map((check) => [String(check.figure), check.title, check.wanted, check.measured, reached(check.isReached)]),
    ['left', 'left', 'right', 'right', 'right'],
  )
}

function wayTexts(checks: readonly Check[]): string[] {
  const texts = checks.flatMap(({ figure, title, standsInTheWay: text }) =>
    text === undefined ? [] : [`- **${figure}. ${title}.** ${text.trim()}`],
  )
  return texts.length === 0 ? [] : ['What stands in the way:', texts.join('\n')]
}

function workSection(work: WorkRecord, results: Results): string {
  // The works of a results file belong to its version of the bench, which is this one.
  const name = work.name as WorkName
  const { text, sizeWord } = WORK_TEXTS[name]
  const figures = results.figures.filter((figure) => figure.work === name)
  const failures = results.failures.filter((failure) => failure.work === name)
  return [
    `## ${work.title}`,
    text,
    figures.length === 0
      ? 'Nothing was measured.'
      : figureTables(figures, ofParts(failures), { sizeWord, rounds: work.rounds }),
    ...notesOf(figures),
    ...failuresText(failures),
    ...chartsOf(name, figures).map(({ file, chart }) => `![${chart.title}](charts/${file})`),
    ...(name === 'pages' ? plansText(results) : []),
  ].join('\n\n')
}

/** The failures of parts, which have a cell in a table. */
function ofParts(failures: readonly Failure[]): readonly Failure[] {
  return failures.filter(({ round }) => round > 0)
}

function notesOf(figures: readonly Figure[]): string[] {
  const notes = new Set(figures.flatMap(({ subject, note }) => (note === undefined ? [] : [`- ${subject}: ${note}`])))
  return notes.size === 0 ? [] : [[...notes].join('\n')]
}

function failuresText(failures: readonly Failure[]): string[] {
  if (failures.length === 0) return []
  const lines = failures.map(({ subject, size, round, reason }) => {
    const place = round === 0 ? subject : `${subject}, ${formatNumber(size)}, round ${round}`
    return `- ${place}: ${reason.replaceAll(/\s+/g, ' ')}`
  })
  return ['Not measured, and why:', lines.join('\n')]
}

function plansText({ plans }: Results): string[] {
  if (plans.length === 0) return []
  const scans = plans.map(({ page, hasSeqScan }) => [page, hasSeqScan ? '**yes**' : 'no'])
  const texts = plans.map(
    ({ page, text }) => `<details><summary>${page}</summary>\n\n\`\`\`\n${text.trim()}\n\`\`\`\n\n</details>`,
  )
  return ['How Postgres reads them (`EXPLAIN`):', markdownTable(['page', 'a sequential scan'], scans), ...texts]
}

function subjectText({ name, version, leaves, setUp }: Results['subjects'][number]): string {
  return `**${name}** ${version}\n\n- Set up: ${setUp}.\n- A slot leaves behind: ${leaves}.`
}

function machineTable({ machine, versions, durability, startedAt, command }: Results): string {
  const rows = [
    ['date', startedAt],
    ['command', `\`${command}\``],
    ['CPU', `${machine.cpu}, ${machine.cores} cores`],
    ['memory', `${formatNumber(machine.memoryGigabytes)} GB`],
    ['OS', machine.os],
    ['kernel', machine.kernel],
    ...Object.entries(versions),
    ...Object.entries(durability).map(([name, value]) => [name, `\`${value}\``]),
  ]
  return markdownTable(['', ''], rows, ['left', 'left'])
}
