import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import type { Command } from 'commander'
import { describe, expect, test } from 'vitest'

import { splitShellWords } from '../src/import/shell-words.ts'
import { EXIT_CODES } from '../src/process/exit-codes.ts'
import { leavesOf, pathOf, recordedProgram } from './recorded-program.ts'

const REPOSITORY = join(import.meta.dirname, '../../..')

function helpOf(command: Command): string {
  let help = ''
  command.configureOutput({
    writeOut: (text) => (help += text),
    writeErr: () => undefined,
    outputError: () => undefined,
  })
  command.outputHelp()
  return help
}

/** The arguments after `carillon` in the examples of a help text, up to the next shell operator. */
function examplesIn(help: string): string[] {
  return [...help.matchAll(/^ {2}\$ (.*)$/gm)].flatMap(([, line = '']) =>
    [...line.matchAll(/(?<=^|[\s(])carillon ((?:(?! \| | > |\)).)*)/g)].map(([, words = '']) => words),
  )
}

const { program } = recordedProgram()
const leaves = leavesOf(program).map((leaf) => [pathOf(leaf), leaf] as const)

describe('every command', () => {
  test.each(leaves)('%s has a description, and examples that run this command', async (path, leaf) => {
    const examples = examplesIn(helpOf(leaf))

    expect(leaf.description()).not.toBe('')
    expect(examples.length).toBeGreaterThan(0)
    for (const example of examples.filter((each) => each.startsWith(path))) {
      const { program: fresh, acted } = recordedProgram()
      await fresh.parseAsync([...splitShellWords(example).words], { from: 'user' })
      expect(acted, example).toEqual([path])
    }
    expect(examples.some((example) => example.startsWith(path))).toBe(true)
  })

  test.each(leaves)('%s is run as a process by a test', (path) => {
    const tests = globSync('tests/cli/*.test.ts', { cwd: REPOSITORY }).map((file) =>
      readFileSync(join(REPOSITORY, file), 'utf8'),
    )

    expect(
      tests.some((text) => text.includes(`('${path}'`)),
      `expected a call run('${path}', …) in tests/cli`,
    ).toBe(true)
  })

  test.each(leaves)('%s has a row in the table of the README', (path) => {
    const readme = readFileSync(join(REPOSITORY, 'packages/cli/README.md'), 'utf8')

    expect(readme).toMatch(new RegExp(`^\\| \`${path}\\b`, 'm'))
  })
})

describe('the help', () => {
  const help = helpOf(program)

  test.each(Object.values(EXIT_CODES))('lists exit code $code: $meaning', ({ code, meaning }) => {
    expect(help).toMatch(new RegExp(`^ +${code} {2}${meaning.replaceAll(/[`]/g, '.')}$`, 'm'))
  })

  test.each(['README.md', '../../docs/guides/command-line.md'])('lists the same exit codes as %s', (page) => {
    const text = readFileSync(join(import.meta.dirname, '..', page), 'utf8')
    const listed = [...text.matchAll(/^\| (\d+) +\|/gm)].map(([, code]) => Number(code))

    expect(listed).toEqual(Object.values(EXIT_CODES).map(({ code }) => code))
  })
})
