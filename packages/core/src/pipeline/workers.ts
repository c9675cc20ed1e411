export { listWorkers } from './store/workers.ts'
export type { FailingServices, WorkerRecord } from './store/workers.ts'
