import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import type { Call } from './trace.ts'

/** A file on a walk, and the function of it that is called first. */
export interface Step {
  readonly file: string
  readonly entry: string
}

const PAGE = readFileSync(join(import.meta.dirname, '../../../docs/architecture.md'), 'utf8')
const [, SECTION = ''] = /^## Walks\n([^]*?)^## /m.exec(PAGE) ?? []

/** The steps in the table below a line of that section. */
export function drawnSteps(title: string): Step[] {
  const [, table = ''] = SECTION.split(`\n${title}\n\n`)
  const [rows = ''] = table.split('\n\n')
  const steps = rows.matchAll(/^\| \d+ +\| `(.+?)` +\| `(.+?)` +\|/gm)
  return [...steps].map(([, file = '', entry = '']) => ({ file, entry }))
}

/** The calls into an earlier step that the section lists, of files whose path starts with `root`. */
export function drawnCallsBack(root: string): string[] {
  const calls = [...SECTION.matchAll(/^- (`.+?` calls .+? of `.+?`)/gm)].map(([, call = '']) => call)
  return calls.filter((call) => call.startsWith(`\`${root}`))
}

/** The numbers in a row of a table of that section. */
export function drawnCounts(title: string): number[] {
  return drawnCells(title).map(Number)
}

/** The names of code in a row of a table of that section. */
export function drawnNames(title: string): string[] {
  const cells = drawnCells(title).join()
  return [...cells.matchAll(/`(.+?)`/g)].map(([, name = '']) => name)
}

function drawnCells(title: string): string[] {
  const row = SECTION.split('\n').find((line) => line.startsWith(`| ${title} `)) ?? ''
  return row.split('|').slice(2, -1)
}

/** Which files a walk is about: those under `root` whose path from there on matches `files`. */
export interface WalkPart {
  readonly root: string
  readonly files: RegExp
}

/** The files of a walk in the order of their first calls. */
export function stepsOf(calls: readonly Call[], { root, files }: WalkPart): Step[] {
  const entries = new Map<string, string>()
  for (const { called } of calls) {
    if (!called.file.startsWith(root)) continue
    const file = called.file.slice(root.length)
    if (files.test(file) && !entries.has(file)) entries.set(file, called.name)
  }
  return [...entries].map(([file, entry]) => ({ file, entry }))
}

/** The calls from the file of a later step into that of an earlier one. */
export function callsBack(calls: readonly Call[], steps: readonly Step[], { root }: WalkPart): string[] {
  const stepOf = (file: string): number => steps.findIndex((step) => `${root}${step.file}` === file)
  return calls.flatMap(({ called, caller = '' }) => {
    const [from, to] = [stepOf(caller), stepOf(called.file)]
    if (to < 0 || from <= to) return []
    const name = called.name === '' ? 'a function' : `\`${called.name}\``
    return [`\`${steps[from]?.file}\` calls ${name} of \`${steps[to]?.file}\``]
  })
}

/** Every file that is called, in the order of the first calls. */
export function filesOf(calls: readonly Call[]): string[] {
  return [...new Set(calls.map(({ called }) => called.file))]
}

/** Prints a list below its title. */
export function print(title: string, lines: readonly string[]): void {
  process.stdout.write(`${title}\n${lines.map((line) => `  ${line}\n`).join('')}`)
}
