import type { PurgeCounts } from '@carillon/api'
import type { Command } from 'commander'

import { fieldLines } from '../output/table.ts'
import type { Screen } from '../output/terminal.ts'
import { confirm, confirmByName } from '../process/input.ts'
import { connect } from '../service/connect.ts'
import { examples, type Define } from './define.ts'

export function addProjectCommand(program: Command, define: Define): void {
  const project = program.command('project').description('delete a whole project')
  addDeleteCommand(project, define)
  addPurge(project, define)
}

function addDeleteCommand(project: Command, define: Define): void {
  const remove = project
    .command('delete')
    .description('delete all schedules of the project; past runs stay readable')
    .argument('<project>', 'id of the project; your key must belong to it')
    .option('--yes', 'do not ask for confirmation')
  examples(remove, 'carillon project delete garden', 'carillon project delete garden --yes')
  define<{ readonly yes?: boolean }>(remove, async ({ cli, args, options, show }) => {
    const [id = ''] = args
    await confirm(cli, `Delete all schedules of the project "${id}"?`, options.yes)
    const answer = await connect(cli).projects.deleteSchedules(id)
    const schedules = answer.deleted === 1 ? '1 schedule was' : `${answer.deleted} schedules were`
    show(answer, () => [`${schedules} deleted`])
  })
}

interface PurgeOptions {
  readonly confirm?: string
  readonly dryRun?: boolean
}

function addPurge(project: Command, define: Define): void {
  const purge = project
    .command('purge')
    .description('permanently remove a project whose schedules are deleted: runs, grants, secrets, members')
    .argument('<project>', 'id of the project; your key must belong to it')
    .option('--confirm <name>', 'id of the project again, instead of typing it when asked')
    .option('--dry-run', 'only count what would be removed')
  examples(purge, 'carillon project purge garden --dry-run', 'carillon project purge garden --confirm garden')
  define<PurgeOptions>(purge, async ({ cli, args, options, show, note }) => {
    const [id = ''] = args
    const { projects } = connect(cli)
    const preview = await projects.previewPurge(id)
    if (options.dryRun === true) {
      show(preview, () => countLines(cli.terminal, preview))
      return
    }
    note(['this will be removed permanently:', ...countLines(cli.terminal, preview)].join('\n'))
    const name = await confirmByName(cli, { what: 'the project', name: id, confirmed: options.confirm })
    const removed = await projects.purge(id, { name })
    show(removed, () => [`project ${id} was removed`])
  })
}

function countLines(screen: Screen, counts: PurgeCounts): string[] {
  return fieldLines(screen, [
    ['Schedules', String(counts.schedules)],
    ['Runs', String(counts.runs)],
    ['Attempts', String(counts.attempts)],
    ['Transcript lines', String(counts.transcriptLines)],
    ['Revisions', String(counts.revisions)],
    ['Changes', String(counts.changes)],
    ['Grants', String(counts.grants)],
    ['Secrets', String(counts.secrets)],
    ['Members', String(counts.members)],
    ['Idempotency keys', String(counts.idempotentAnswers)],
    ['Rows of modules', String(counts.moduleRows)],
  ])
}
