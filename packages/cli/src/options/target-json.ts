import { messageOf, type ScheduleInput } from '@carillon/api'

import { usageError } from '../process/cli-error.ts'
import type { Cli } from '../process/cli.ts'
import { readText } from '../process/input.ts'

export type TargetDefinition = ScheduleInput['target']

const FORMS = 'JSON, @ and a file, or - for standard input'

/**
 * Reads the value of `--target-json`: JSON, `@` and the path of a file that holds it, or `-` for standard input. Only its kind is checked
 * here. The server checks the rest, by the schema of that kind.
 */
export async function readTargetJson(text: string, context: Pick<Cli, 'cwd' | 'stdin'>): Promise<TargetDefinition> {
  const path = text === '-' ? '-' : /^@(.+)$/s.exec(text)?.[1]
  const target = parse(path === undefined ? text : await readText(path, context))
  if (typeof target !== 'object' || target === null || Array.isArray(target)) {
    const found = Array.isArray(target) ? 'a list' : `a ${target === null ? 'null' : typeof target}`
    throw usageError(`--target-json: expected a JSON object, got ${found}`)
  }
  if (!('kind' in target) || typeof target.kind !== 'string') {
    const found = 'kind' in target ? JSON.stringify(target.kind) : 'none'
    throw usageError(`--target-json: expected a kind such as "echo", got ${found}: see \`carillon target-kinds list\``)
  }
  return target as TargetDefinition
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw usageError(`--target-json: expected ${FORMS}, got something else: ${messageOf(error)}`)
  }
}
