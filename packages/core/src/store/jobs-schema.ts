/** Where the engine, Graphile Worker, keeps its jobs. Its tables are its own: only its functions are called. */
export const JOBS_SCHEMA = 'carillon_jobs'
