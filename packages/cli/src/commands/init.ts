import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'

import { messageOf } from '@carillon/api'
import type { Command } from 'commander'

import { moduleFiles } from '../init/module-files.ts'
import { CliError, usageError } from '../process/cli-error.ts'
import { VERSION } from '../process/version.ts'
import { examples, type Define } from './define.ts'

const NAME = /^[a-z][a-z0-9_]{0,30}$/
/** What `CARILLON_MODULES` would refuse: kinds that Carillon itself has. */
const TAKEN = ['http', 'echo']

interface InitOptions {
  readonly out: string
}

export function addInitCommand(program: Command, define: Define): void {
  const init = program.command('init').description('write the files of something new')
  const module = init
    .command('module')
    .description('write a module with a target kind of its own, and a test that runs it')
    .argument('<name>', 'name of the module and of its kind, such as ticket')
    .option('--out <directory>', 'directory of the files', '.')
  examples(module, 'carillon init module ticket', 'carillon init module ticket --out modules/ticket')
  define<InitOptions>(module, async ({ cli, args, options, note, show }) => {
    const [name = ''] = args
    requireName(name)
    const folder = resolve(cli.cwd, options.out)
    const files = filesToWrite(name, folder)
    await writeAll(folder, files)
    const paths = Object.keys(files).map((file) => relative(cli.cwd, join(folder, file)))
    show({ name, folder, files: Object.keys(files) }, () => paths.map((path) => `wrote ${path}`))
    note(nextSteps(name, relative(cli.cwd, folder)))
  })
}

function requireName(name: string): void {
  if (!NAME.test(name)) {
    throw usageError(`expected a name of a-z, 0-9 and _ that begins with a letter, at most 31 characters, got ${name}`)
  }
  if (TAKEN.includes(name)) throw usageError(`expected a name that no kind of Carillon has, got ${name}`)
}

/** A package.json that exists stays as it is. Any other file that exists refuses the command before anything is written. */
function filesToWrite(name: string, folder: string): Readonly<Record<string, string>> {
  const all = moduleFiles({ name, version: VERSION })
  const existing = Object.keys(all).filter((file) => existsSync(join(folder, file)))
  const inTheWay = existing.filter((file) => file !== 'package.json')
  if (inTheWay.length > 0) {
    const message = `expected no file of these names in ${folder}, got ${inTheWay.join(', ')}: pass --out with another directory`
    throw new CliError('file_exists', message)
  }
  return Object.fromEntries(Object.entries(all).filter(([file]) => !existing.includes(file)))
}

async function writeAll(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  try {
    await mkdir(folder, { recursive: true })
    for (const [file, text] of Object.entries(files)) await writeFile(join(folder, file), text, { flag: 'wx' })
  } catch (error) {
    throw new CliError('file_unwritable', `expected to write into ${folder}, got ${messageOf(error)}`, { cause: error })
  }
}

function nextSteps(name: string, folder: string): string {
  return [
    'Next:',
    ...(folder === '' ? [] : [`  cd ${folder}`]),
    '  npm install && npm test',
    `  CARILLON_MODULES=./${name}.ts npx carillon up`,
    `  npx carillon schedules create Hello --in 5s --target-json '{"kind":"${name}","to":"Ada"}' --wait`,
  ].join('\n')
}
