/** Of every schedule whose rows are written straight: nothing is tried again, made up for or spread. As JSON. */
export const POLICY = JSON.stringify({
  overlap: 'forbid',
  missed: 'skip',
  startingDeadlineSeconds: 300,
  retry: { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 },
  autoPauseThreshold: 10,
  spreadSeconds: 0,
})
