import { mayBeRepeated } from './idempotency-key.ts'
import type { Operation } from './operation.ts'
import { createdBatch, previewedBatch, scheduleBatch } from './schemas/batch.ts'

/** Many schedules by one request. */
export const batchOperations = {
  createSchedules: {
    method: 'post',
    path: '/schedules/batch',
    tag: 'schedules',
    summary: 'Make many schedules',
    description:
      'All of them in one transaction, or none: for imports. What is wrong is told with its place, such as ' +
      '`schedules[17].cadence.expression`.',
    role: 'admin',
    headers: mayBeRepeated,
    body: scheduleBatch,
    success: {
      status: 201,
      description: 'Their ids.',
      schema: createdBatch,
      headers: { 'Idempotency-Replayed': '`true` if the answer was given before.' },
    },
    problems: ['quota_exceeded', 'idempotency_in_flight', 'idempotency_key_reused'],
  },
  previewSchedules: {
    method: 'post',
    path: '/schedules/batch/preview',
    tag: 'schedules',
    summary: 'See what a create of many would make',
    description: 'Refuses what it would refuse, and makes nothing. Whether there is room for all is not looked at.',
    role: 'member',
    body: scheduleBatch,
    success: { status: 200, description: 'What each would be.', schema: previewedBatch },
    problems: [],
  },
} as const satisfies Readonly<Record<string, Operation>>
