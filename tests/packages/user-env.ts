import { delimiter } from 'node:path'

import { REPOSITORY } from '../house/run-tool.ts'

/** The environment of a user of the packages: without the tools of this repository, the settings of its npm, and any of Carillon's. */
export const USER_ENV: NodeJS.ProcessEnv = Object.fromEntries(
  Object.entries(process.env)
    .filter(([name]) => !/^(?:npm_|CARILLON_|DATABASE_URL$)/i.test(name))
    .map(([name, value = '']) => [name, name === 'PATH' ? withoutOwnTools(value) : value]),
)

function withoutOwnTools(path: string): string {
  return path
    .split(delimiter)
    .filter((folder) => !folder.startsWith(REPOSITORY))
    .join(delimiter)
}
