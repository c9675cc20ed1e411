import type { Member, MemberInput } from '@carillon/api'
import { Option, type Command } from 'commander'

import { connect } from '../connection.ts'
import { examples, type Define } from '../define.ts'
import { tableLines } from '../output/table.ts'
import { addPageOptions, notePage, pageQuery, type PageOptions } from '../page-options.ts'

export function addMembers(program: Command, define: Define): void {
  const members = program.command('members').description('say who may do what in the project')
  addList(members, define)

  const put = members
    .command('put')
    .description('say the most that somebody may do, whatever their key says; who was removed is back')
    .argument('<subject>', 'who, such as user:alice')
    .addOption(
      new Option('--role <role>', 'a member reads, an admin also changes')
        .choices(['member', 'admin'])
        .makeOptionMandatory(),
    )
  examples(put, 'carillon members put user:alice --role member')
  define<MemberInput>(put, async ({ cli, args, options, show }) => {
    const member = await connect(cli).members.put(args[0] ?? '', { role: options.role })
    show(member, () => [`${member.subject} may act as ${member.role}`])
  })

  const remove = members
    .command('remove')
    .description('remove somebody, listed or not: their keys are refused, and the slots of their schedules are skipped')
    .argument('<subject>', 'who, such as user:alice')
  examples(remove, 'carillon members remove user:alice')
  define(remove, async ({ cli, args, show }) => {
    const member = await connect(cli).members.remove(args[0] ?? '')
    show(member, () => [`${member.subject} is removed: \`carillon members put\` brings them back`])
  })
}

function addList(members: Command, define: Define): void {
  const list = members.command('list').description('list members by subject, removed ones too')
  addPageOptions(list)
  examples(list, 'carillon members list')
  define<PageOptions>(list, async ({ cli, options, show, note }) => {
    const page = await connect(cli).members.list(pageQuery(options))
    show(page, () =>
      tableLines<Member>(
        cli.terminal,
        [
          { title: 'SUBJECT', of: ({ subject }) => subject, shrinksTo: 12 },
          { title: 'ROLE', of: ({ role, removedAt }) => (removedAt === null ? role : '-') },
          { title: 'ADDED', of: ({ addedAt }) => addedAt },
          { title: 'BY', of: ({ addedBy }) => addedBy, shrinksTo: 12 },
          { title: 'REMOVED', of: ({ removedAt }) => removedAt ?? '-' },
        ],
        page.items,
      ),
    )
    notePage(page, note, 'nobody is listed: everybody may do what their key says')
  })
}
