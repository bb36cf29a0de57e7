// What a client in TypeScript makes of the generated types; compiled, never run.
import type { components, paths } from "./api";

type Enqueue = paths["/v1/jobs"]["post"]["requestBody"]["content"]["application/json"];
type Job = paths["/v1/jobs/{id}"]["get"]["responses"]["200"]["content"]["application/json"];
type Problem = components["schemas"]["Problem"];

export const body: Enqueue = { kind: "greet", args: { name: "Ada" }, priority: 5 };

export function tell(job: Job, problem: Problem): string {
  return `${job.id}: ${job.status}, ${problem.code}`;
}

// @ts-expect-error a kind is needed
export const wrong: Enqueue = { args: {} };
