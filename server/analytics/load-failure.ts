// Says in the last line that DuckDB cannot be loaded, instead of Node's many lines. The analytics process imports this
// module before those that load DuckDB.

/** Organisations see the last line, so the reason, which contains paths, comes before it. */
export function failToLoad(error: Error): void {
  process.stderr.write(`${error.message}\nDuckDB cannot be loaded\n`);
  process.exit(1);
}

process.once('uncaughtException', failToLoad);
