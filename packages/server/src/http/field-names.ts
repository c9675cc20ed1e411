import { CarillonError } from '@carillon/core'

/**
 * What the core refuses, by the names that whoever asked knows.
 *
 * @param names of the core's arguments; one that is not among them keeps its name
 */
export async function naming<Result>(
  names: Readonly<Record<string, string>>,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof CarillonError) || error.problems.length === 0) throw error
    const { code, message, problems } = error
    const named = problems.map((problem) => ({ ...problem, path: renamedPath(names, problem.path) }))
    const [first, renamed] = [problems[0]?.path ?? '', named[0]?.path ?? '']
    const text = message.startsWith(`${first}:`) ? renamed + message.slice(first.length) : message
    throw new CarillonError(code, text, { problems: named, cause: error })
  }
}

/** Not by `in`: somebody may call a field `constructor`. */
function renamedPath(names: Readonly<Record<string, string>>, path: string): string {
  return (Object.hasOwn(names, path) ? names[path] : undefined) ?? path
}
