import { execFileSync } from 'node:child_process'

import { describe, expect, test } from 'vitest'

import { commandNodes } from '../src/commands/completion.ts'
import { completionScripts } from '../src/output/completion-scripts.ts'
import { leavesOf, pathOf, recordedProgram } from './recorded-program.ts'

const { program } = recordedProgram()
const nodes = commandNodes(program)
const leaves = leavesOf(program)

function bash(...args: string[]): string {
  return execFileSync('bash', args, { encoding: 'utf8' })
}

/** The words that bash offers in place of the last word. */
function completed(...words: string[]): string[] {
  const quoted = words.map((word) => `'${word}'`).join(' ')
  const script = [
    completionScripts.bash(nodes),
    `COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _carillon; printf '%s\\n' "\${COMPREPLY[@]}"`,
  ]
  return bash('-c', script.join('\n'))
    .split('\n')
    .filter((line) => line !== '')
}

describe('the completion for bash', () => {
  test('is valid bash', () => {
    expect(bash('-n', '-c', completionScripts.bash(nodes))).toBe('')
  })

  test.each([
    ['subcommands with this prefix', ['carillon', 'schedules', 'p'], ['pause', 'preview']],
    ['commands', ['carillon', 'wor'], ['worker']],
    ['options', ['carillon', 'schedules', 'create', '--time'], ['--timezone', '--timeout']],
    ['options after arguments', ['carillon', 'schedules', 'create', 'name', '--method', 'GET', '--ur'], ['--url']],
    ['the global option', ['carillon', 'export', '--js'], ['--json']],
    [
      'the choices of an option',
      ['carillon', 'schedules', 'edit', 'x', '--overlap', ''],
      ['forbid', 'queue', 'allow', 'replace'],
    ],
    ['nothing for a value that it does not know', ['carillon', 'schedules', 'create', '--url', ''], []],
    [
      'options of the right command if an option value equals the name of a command',
      ['carillon', 'worker', '--name', 'runs', '--conc'],
      ['--concurrency'],
    ],
  ])('offers %s', (_what, words, offered) => {
    expect(completed(...words)).toEqual(offered)
  })
})

describe('the completion for every shell', () => {
  test.each([
    ['bash', completionScripts.bash(nodes)],
    ['zsh', completionScripts.zsh(nodes)],
    ['fish', completionScripts.fish(nodes)],
  ])('%s knows every command and every option', (shell, script) => {
    for (const leaf of leaves) {
      expect(script, pathOf(leaf)).toContain(leaf.name())
      for (const { long } of leaf.options) {
        expect(script).toContain(shell === 'fish' ? `-l ${long?.slice(2) ?? ''} ` : long)
      }
    }
  })
})
