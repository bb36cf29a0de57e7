// The shapes of the API's answers that pages use; the whole contract is at /openapi.json.
/**
 * @typedef {{id: string, kind: string, status: string, waiting_for: string | null, lane: string, priority: number, tenant: string,
 *   args?: any, labels: Record<string, string> | null, attempt: number, max_attempts: number, created_at: string,
 *   created_by: string | null, run_at: string | null, claimed_at: string | null, started_at: string | null,
 *   finished_at: string | null, worker: string | null, phase: string | null, progress: any, result?: any, error: any,
 *   errors: any[] | null, cancel_requested_at: string | null, retry_of: string | null, parent: string | null,
 *   snapshot_hash?: string | null, requires_hash?: string | null, identity?: string | null, after?: string[] | null,
 *   key?: string | null, key_limit?: number | null, resource_lock?: string | null, dedupe_key?: string | null,
 *   expires_at?: string | null, timeout?: number | null, group?: string | null, delivery: string, runner?: any}} Job
 * @typedef {{name: string, kinds: string[], slots: number | null, in_use: number, depth: number,
 *   oldest_age_seconds: number | null, poll_interval_ms: number, stale_timeout_seconds: number | null, on_stale: string,
 *   enabled: boolean, rate_per_second: number | null, burst: number | null, fair: boolean, ageing_seconds: number | null,
 *   needs_approval: boolean, jobs?: any[]}} Lane
 * @typedef {{id: number, name: string, host: string | null, pid: number | null, version: string | null,
 *   lanes: string[] | null, labels: Record<string, string> | null, started_at: string, heartbeat_at: string, status: string,
 *   in_use: number, blocked_seconds: number | null, blocked_by: string | null}} Worker
 * @typedef {{draining: boolean, lanes: Lane[], workers: Worker[], runners: Worker[]}} Fleet
 */
export {};
