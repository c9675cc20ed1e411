import { execFileSync } from 'node:child_process'

import { describe, expect, test } from 'vitest'

import { bashCompletion } from '../src/completion/bash.ts'
import { commandNodes } from '../src/completion/command-tree.ts'
import { fishCompletion } from '../src/completion/fish.ts'
import { zshCompletion } from '../src/completion/zsh.ts'
import { leavesOf, pathOf, recordedProgram } from './recorded-program.ts'

const { program } = recordedProgram()
const nodes = commandNodes(program)
const leaves = leavesOf(program)

function bash(...args: string[]): string {
  return execFileSync('bash', args, { encoding: 'utf8' })
}

/** What bash offers for the last word. */
function completed(...words: string[]): string[] {
  const quoted = words.map((word) => `'${word}'`).join(' ')
  const script = [
    bashCompletion(nodes),
    `COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _carillon; printf '%s\\n' "\${COMPREPLY[@]}"`,
  ]
  return bash('-c', script.join('\n'))
    .split('\n')
    .filter((line) => line !== '')
}

describe('the completion for bash', () => {
  test('is a script that bash can read', () => {
    expect(bash('-n', '-c', bashCompletion(nodes))).toBe('')
  })

  test.each([
    ['subcommands that begin so', ['carillon', 'schedules', 'p'], ['pause', 'preview']],
    ['commands', ['carillon', 'wor'], ['worker']],
    ['options', ['carillon', 'schedules', 'create', '--time'], ['--timezone', '--timeout']],
    ['options behind arguments', ['carillon', 'schedules', 'create', 'name', '--method', 'GET', '--ur'], ['--url']],
    ['the option of all commands', ['carillon', 'export', '--js'], ['--json']],
    [
      'the choices of an option',
      ['carillon', 'schedules', 'edit', 'x', '--overlap', ''],
      ['forbid', 'queue', 'allow', 'replace'],
    ],
    ['nothing for a value that it cannot know', ['carillon', 'schedules', 'create', '--url', ''], []],
    [
      'a subcommand though a value before it is called like one',
      ['carillon', 'worker', '--name', 'runs', '--conc'],
      ['--concurrency'],
    ],
  ])('offers %s', (_what, words, offered) => {
    expect(completed(...words)).toEqual(offered)
  })
})

describe('the completion for every shell', () => {
  test.each([
    ['bash', bashCompletion(nodes)],
    ['zsh', zshCompletion(nodes)],
    ['fish', fishCompletion(nodes)],
  ])('%s knows every command and every option', (shell, script) => {
    for (const leaf of leaves) {
      expect(script, pathOf(leaf)).toContain(leaf.name())
      for (const { long } of leaf.options) {
        expect(script).toContain(shell === 'fish' ? `-l ${long?.slice(2) ?? ''} ` : long)
      }
    }
  })
})
