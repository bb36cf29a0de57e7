// Where this dashboard is: "" at the top of its host, "/queue" where an application has mounted it there.
export const ROOT = new URL(import.meta.url).pathname.replace(/\/assets\/root\.js$/, "");
