const POLICY_FIELDS = {
  overlap: 'forbid',
  missed: 'skip',
  startingDeadlineSeconds: 300,
  retry: { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 },
  autoPauseThreshold: 10,
  spreadSeconds: 0,
}

/** The policy of schedules whose rows the bench inserts itself: no retries, no late runs, no spread. As JSON. */
export const POLICY = JSON.stringify(POLICY_FIELDS)

/** Like `POLICY`, with one retry. Its backoff is one second minus a jitter of up to a tenth. As JSON. */
export const RETRY_POLICY = JSON.stringify({ ...POLICY_FIELDS, retry: { ...POLICY_FIELDS.retry, maxAttempts: 2 } })
