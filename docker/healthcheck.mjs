/** Whether the conductor in this container lives: exit code 0, or 1 and why. */
const { JOBBOARD_HEALTH_PORT: port = '8080' } = process.env
const url = `http://127.0.0.1:${port}/healthz`

try {
  const response = await fetch(url, { signal: AbortSignal.timeout(4_000) })
  // What the orchestrator keeps of it: the state, of the board and of the logbooks, too.
  console.log((await response.text()).trim())
  process.exitCode = response.ok ? 0 : 1
} catch (error) {
  console.log(`${url}: ${error.cause?.code ?? error.message}`)
  process.exitCode = 1
}
