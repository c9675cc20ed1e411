import type { PurgeCounts } from '@carillon/api'
import type { Command } from 'commander'

import { confirm, confirmByName } from '../confirm.ts'
import { connect } from '../connection.ts'
import { examples, type Define } from '../define.ts'
import { fieldLines } from '../output/table.ts'
import type { Terminal } from '../output/terminal.ts'

export function addProject(program: Command, define: Define): void {
  const project = program.command('project').description('end all of a project at once')
  const remove = project
    .command('delete')
    .description('delete all schedules of the project; its runs stay in the ledger')
    .argument('<project>', 'its id, which must be that of the key')
    .option('--yes', 'do not ask')
  examples(remove, 'carillon project delete garden', 'carillon project delete garden --yes')
  define<{ readonly yes?: boolean }>(remove, async ({ cli, args, options, show }) => {
    const [id = ''] = args
    await confirm(cli, `Delete all schedules of the project "${id}"?`, options.yes)
    const answer = await connect(cli).projects.deleteSchedules(id)
    const schedules = answer.deleted === 1 ? '1 schedule is' : `${answer.deleted} schedules are`
    show(answer, () => [`${schedules} deleted`])
  })
  addPurge(project, define)
}

function addPurge(project: Command, define: Define): void {
  const purge = project
    .command('purge')
    .description(
      'remove for good what is left of a project whose schedules are deleted: ledger, grants, secrets, members',
    )
    .argument('<project>', 'its id, which must be that of the key')
    .option('--confirm <name>', 'its id once more, instead of being asked')
    .option('--dry-run', 'only count')
  examples(purge, 'carillon project purge garden --dry-run', 'carillon project purge garden --confirm garden')
  define<PurgeOptions>(purge, async ({ cli, args, options, show, note }) => {
    const [id = ''] = args
    const { projects } = connect(cli)
    const preview = await projects.previewPurge(id)
    if (options.dryRun === true) {
      show(preview, () => countLines(cli.terminal, preview))
      return
    }
    note(['to be removed for good:', ...countLines(cli.terminal, preview)].join('\n'))
    const name = await confirmByName(cli, { what: 'the project', name: id, confirmed: options.confirm })
    const removed = await projects.purge(id, { name })
    show(removed, () => [`what was left of ${id} is removed`])
  })
}

interface PurgeOptions {
  readonly confirm?: string
  readonly dryRun?: boolean
}

function countLines(screen: Terminal, counts: PurgeCounts): string[] {
  return fieldLines(screen, [
    ['Schedules', String(counts.schedules)],
    ['Runs', String(counts.runs)],
    ['Attempts', String(counts.attempts)],
    ['Revisions', String(counts.revisions)],
    ['Changes', String(counts.changes)],
    ['Grants', String(counts.grants)],
    ['Secrets', String(counts.secrets)],
    ['Members', String(counts.members)],
    ['Kept answers', String(counts.idempotentAnswers)],
  ])
}
