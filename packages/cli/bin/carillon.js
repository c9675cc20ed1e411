#!/usr/bin/env node
// Plain JavaScript that also runs on old versions of Node. The sources are TypeScript, which Node runs from 24 on.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import * as nodeModule from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const NODE_MAJOR_MIN = 24
const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))

if (Number(process.versions.node.split('.')[0]) >= NODE_MAJOR_MIN) {
  // Keeps compiled code in the system's temporary folder, so that a command does not compile all sources at each start.
  nodeModule.enableCompileCache()
  await import('../src/main.ts')
} else runOn(findNode())

/**
 * The Node that was installed with Carillon: the package of this system that the package `carillon` brings, or the package `node` of the
 * workspace. A project may have packages of these names for itself, of any version. Undefined if none is new enough.
 */
function findNode() {
  const { platform, arch } = process
  const names = [`node-${platform === 'win32' ? 'win' : platform}-${arch}`, `node-bin-${platform}-${arch}`, 'node']
  for (const name of names) {
    try {
      const manifest = nodeModule.createRequire(import.meta.url).resolve(`${name}/package.json`)
      const { version } = /** @type {{ version: string }} */ (JSON.parse(readFileSync(manifest, 'utf8')))
      const binary = join(dirname(manifest), 'bin', platform === 'win32' ? 'node.exe' : 'node')
      if (Number(version.split('.')[0]) >= NODE_MAJOR_MIN && existsSync(binary)) return binary
    } catch {
      // It is not installed.
    }
  }
  return undefined
}

/** @param {string | undefined} binary */
function runOn(binary) {
  if (binary === undefined) {
    process.stderr.write(
      `error: expected Node ${NODE_MAJOR_MIN} or later, got ${process.versions.node}: install it, or run npm install, which installs it here unless optional packages are omitted\n`,
    )
    process.exitCode = 1
    return
  }
  const child = spawn(binary, [main, ...process.argv.slice(2)], { stdio: 'inherit' })
  process.on('SIGTERM', () => child.kill('SIGTERM'))
  // A terminal also sends it to the child; the child treats both as one interrupt.
  process.on('SIGINT', () => child.kill('SIGINT'))
  child.on('error', (error) => {
    process.stderr.write(`error: ${binary} does not start: ${error.message}\n`)
    process.exitCode = 1
  })
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}
