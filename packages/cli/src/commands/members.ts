import { ROLES, type Member, type MemberInput } from '@carillon/api'
import { Option, type Command } from 'commander'

import { addPageOptions, notePage, pageQuery, type PageOptions } from '../options/page-options.ts'
import { tableLines } from '../output/table.ts'
import { connect } from '../service/connect.ts'
import { examples, type Define } from './define.ts'

export function addMembersCommand(program: Command, define: Define): void {
  const members = program.command('members').description('manage who can access the project')
  addList(members, define)
  addPut(members, define)
  addRemove(members, define)
}

function addList(members: Command, define: Define): void {
  const list = members.command('list').description('list members by name, including removed ones')
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
    notePage(page, note, 'no members: every key has the role it was created with')
  })
}

function addPut(members: Command, define: Define): void {
  const put = members
    .command('put')
    .description('limit the role of a user, whatever their key allows; also restores a removed user')
    .argument('<subject>', 'user, such as user:alice')
    .addOption(
      new Option('--role <role>', 'a member can read, an admin can also change').choices(ROLES).makeOptionMandatory(),
    )
  examples(put, 'carillon members put user:alice --role member')
  define<MemberInput>(put, async ({ cli, args, options, show }) => {
    const member = await connect(cli).members.put(args[0] ?? '', { role: options.role })
    show(member, () => [`${member.subject} has the role ${member.role}`])
  })
}

function addRemove(members: Command, define: Define): void {
  const remove = members
    .command('remove')
    .description('remove a user, listed or not: their keys stop working and their schedules skip their slots')
    .argument('<subject>', 'user, such as user:alice')
  examples(remove, 'carillon members remove user:alice')
  define(remove, async ({ cli, args, show }) => {
    const member = await connect(cli).members.remove(args[0] ?? '')
    show(member, () => [`${member.subject} is removed: undo this with \`carillon members put\``])
  })
}
