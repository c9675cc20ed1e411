#!/usr/bin/env node
// Plain JavaScript that old Nodes understand: the sources are TypeScript, which Node runs by itself from 24 on.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import * as nodeModule from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const NODE_MAJOR_MIN = 24
const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))

if (Number(process.versions.node.split('.')[0]) >= NODE_MAJOR_MIN) {
  // Compiled code is kept in the system's temporary folder: half of what a command takes would be compiling it again.
  nodeModule.enableCompileCache()
  await import('../src/main.ts')
} else runOn(findNode())

/** The binary of the npm package `node`, which the install brings; undefined if it did not. */
function findNode() {
  try {
    const folder = dirname(nodeModule.createRequire(import.meta.url).resolve('node/package.json'))
    const binary = join(folder, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
    return existsSync(binary) ? binary : undefined
  } catch {
    return undefined
  }
}

/** @param {string | undefined} binary */
function runOn(binary) {
  if (binary === undefined) {
    process.stderr.write(
      `error: expected Node ${NODE_MAJOR_MIN} or later, got ${process.versions.node}: install it, or run npm install, which brings it\n`,
    )
    process.exitCode = 1
    return
  }
  const child = spawn(binary, [main, ...process.argv.slice(2)], { stdio: 'inherit' })
  process.on('SIGTERM', () => child.kill('SIGTERM'))
  // A terminal has sent it to the child as well; the child takes both for one.
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
