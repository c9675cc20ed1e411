import { checkBoundaries } from './boundaries/check.ts'

const violations = checkBoundaries(process.cwd())
for (const { rule, file, line, message } of violations) process.stderr.write(`${file}:${line} ${rule}: ${message}\n`)
if (violations.length > 0) process.exitCode = 1
