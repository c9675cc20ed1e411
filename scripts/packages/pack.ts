import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { build } from './build.ts'

interface Packed {
  readonly filename: string
  readonly size: number
  readonly unpackedSize: number
}

/** Builds all packages in a temporary folder and writes their tarballs into `folder`. */
export async function pack(folder: string): Promise<readonly Packed[]> {
  mkdirSync(folder, { recursive: true })
  const work = mkdtempSync(join(tmpdir(), 'carillon-build-'))
  try {
    const tarballs: Packed[] = []
    for (const built of await build(join(work, 'build'))) {
      const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]
      const { stdout } = await promisify(execFile)('npm', args, { cwd: built.folder })
      const [packed] = Object.values(JSON.parse(stdout) as Record<string, Packed>)
      if (packed === undefined) throw new Error(`npm packed nothing for ${built.name}`)
      tarballs.push(packed)
    }
    return tarballs
  } finally {
    rmSync(work, { recursive: true })
  }
}
