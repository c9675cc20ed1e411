import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { VERSION } from '@carillon/core'
import { expect, test } from 'vitest'

import { createFile, findDataDirectory, openDataDirectory } from '../../src/start/data-directory.ts'
import { readOrCreateAdminKey, openAdminKey } from '../../src/start/keys.ts'
import { readSettings } from '../../src/start/settings.ts'
import { canBecomeOthers, createFolder } from './folder.ts'

function modeOf(path: string): number {
  return statSync(path).mode & 0o777
}

function refusal(code: string, message: string): unknown {
  return expect.objectContaining({ name: 'OperatorError', code, message })
}

/** The error that opening a directory throws. */
function opening(path: string): unknown {
  try {
    openDataDirectory(path)
  } catch (error) {
    return error
  }
  return 'nothing was thrown'
}

test('a new directory gets a version file, and other users may pass through it but not list it', () => {
  const path = join(createFolder(), 'made/by/start')

  const directory = openDataDirectory(path)

  expect(directory).toEqual({
    path,
    postgresDir: join(path, 'postgres'),
    adminKeyFile: join(path, 'admin.key'),
    secretsKeyFile: join(path, 'secrets.key'),
  })
  expect(modeOf(path)).toBe(0o711)
  expect(JSON.parse(readFileSync(join(path, 'version.json'), 'utf8'))).toEqual({ layout: 1, carillon: VERSION })
})

test('an existing directory keeps its mode, and its version file names the version that used it last', () => {
  const path = createFolder()
  chmodSync(path, 0o750)
  openDataDirectory(path)
  writeFileSync(join(path, 'version.json'), JSON.stringify({ layout: 1, carillon: '0.0.9' }))

  openDataDirectory(path)

  expect(modeOf(path)).toBe(0o750)
  expect(JSON.parse(readFileSync(join(path, 'version.json'), 'utf8'))).toEqual({ layout: 1, carillon: VERSION })
  expect(readdirSync(path)).toEqual(['version.json'])
})

test('files left by a crash in the middle of the first start are ignored', () => {
  const path = createFolder()
  writeFileSync(join(path, '.unfinished-version.json-0123'), '{"lay')

  expect(findDataDirectory(path)).toBeUndefined()
  openDataDirectory(path)

  expect(findDataDirectory(path)).toMatchObject({ path })
})

test('a directory with a later layout is refused in one sentence, and left unchanged', () => {
  const path = createFolder()
  const written = JSON.stringify({ layout: 2, carillon: '3.0.0', added: true })
  writeFileSync(join(path, 'version.json'), written)

  expect(opening(path)).toEqual(
    refusal(
      'data_directory_newer',
      `expected a data directory of layout 1 or earlier at ${path}, got layout 2 of Carillon 3.0.0: ` +
        'start that version or a later one, or choose another directory with CARILLON_DATA_DIR',
    ),
  )
  expect(readFileSync(join(path, 'version.json'), 'utf8')).toBe(written)
})

test('a directory with other files is refused with the name of a file, and left unchanged', () => {
  const path = createFolder()
  writeFileSync(join(path, 'thesis.txt'), '')

  expect(opening(path)).toEqual(
    refusal(
      'data_directory_foreign',
      `expected an empty folder or a data directory of Carillon at ${path}, got other files (such as thesis.txt): ` +
        'choose another with CARILLON_DATA_DIR',
    ),
  )
  expect(readdirSync(path)).toEqual(['thesis.txt'])
})

test.each(['', 'null', '{"layout":"1"}', '{"layout":0,"carillon":"0.0.1"}', '[1'])(
  'a version file with the content %j is refused with the content it should have',
  (text) => {
    const path = createFolder()
    writeFileSync(join(path, 'version.json'), text)

    expect(opening(path)).toEqual(
      refusal(
        'data_directory_foreign',
        `${join(path, 'version.json')}: expected a text such as {"layout":1,"carillon":"${VERSION}"}, got another: ` +
          'restore the file, or choose another directory with CARILLON_DATA_DIR',
      ),
    )
  },
)

test("a file at the path of the directory, or at a parent's path, is refused in one sentence", () => {
  const file = join(createFolder(), 'file')
  writeFileSync(file, '')
  const refused = (path: string, found: string): unknown =>
    refusal(
      'data_directory_unusable',
      `expected a directory that this user may write to at ${path}, got ${found}: make it one, or choose another with CARILLON_DATA_DIR`,
    )

  expect(opening(file)).toEqual(refused(file, 'a file'))
  expect(opening(join(file, 'data'))).toEqual(refused(join(file, 'data'), 'the error ENOTDIR'))
})

test.runIf(canBecomeOthers)('a directory without write permission is refused in one sentence', async () => {
  const folder = createFolder()
  const path = join(folder, 'data')
  mkdirSync(path, { mode: 0o755 })
  const script = `import { openDataDirectory } from ${JSON.stringify(new URL('../../src/start/data-directory.ts', import.meta.url).href)}
    try { openDataDirectory(${JSON.stringify(path)}) } catch (error) { console.log(error.code, error.message) }`

  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module-typescript', '-e', script], {
    uid: 1,
    gid: 1,
    cwd: '/',
  })

  expect(stdout).toContain(
    `data_directory_unusable expected a directory that this user may write to at ${path}, got the error EACCES: ` +
      'make it one, or choose another with CARILLON_DATA_DIR',
  )
})

test('an admin key is created once, is readable by its owner only, and is used again', () => {
  const directory = openDataDirectory(join(createFolder(), 'data'))

  const key = readOrCreateAdminKey(directory)

  expect(key).toMatch(/^carillon_admin_[\w-]{43}$/)
  expect(modeOf(directory.adminKeyFile)).toBe(0o600)
  expect(readOrCreateAdminKey(directory)).toBe(key)
  expect(readdirSync(directory.path).toSorted()).toEqual(['admin.key', 'version.json'])
})

test('of two processes that create a key at the same time, one does, and the other uses its key', () => {
  const directory = openDataDirectory(createFolder())
  const first = 'the-key-that-another-process-made'
  expect(createFile(directory.adminKeyFile, { text: `${first}\n`, mode: 0o600 })).toBe(true)

  expect(createFile(directory.adminKeyFile, { text: 'mine', mode: 0o600 })).toBe(false)
  expect(readOrCreateAdminKey(directory)).toBe(first)
  expect(readdirSync(directory.path).toSorted()).toEqual(['admin.key', 'version.json'])
})

test('a key file without a valid key is refused, and is neither quoted nor replaced', () => {
  const directory = openDataDirectory(createFolder())
  writeFileSync(directory.adminKeyFile, 'hunter2\n')

  expect(() => readOrCreateAdminKey(directory)).toThrow(
    `${directory.adminKeyFile}: expected a key of 24 characters or more, got something else: delete the file to create a new key, or set CARILLON_ADMIN_KEY`,
  )
  expect(readFileSync(directory.adminKeyFile, 'utf8')).toBe('hunter2\n')
})

test('a key in the settings is used as it is, and no directory is created', () => {
  const dataDir = join(createFolder(), 'data')
  const adminKey = 'abcdefghijklmnopqrstuvwxyz'

  expect(openAdminKey(readSettings({}, { dataDir, adminKey }))).toEqual({ adminKey, dataDir: null })
  expect(existsSync(dataDir)).toBe(false)
  expect(openAdminKey(readSettings({}, { dataDir }))).toMatchObject({ dataDir })
})
