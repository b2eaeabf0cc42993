/** A Node process that belongs to a test: it says lines, takes signals, and is gone when the test is. */
import { compiled } from './compiled.ts'
import { type GuardedProcess, startGuarded } from './guarded-process.ts'

export interface NodeProcess extends AsyncDisposable {
  readonly pid: number
  /** Everything it has said so far. */
  readonly lines: readonly string[]
  /** Resolves with its exit code. */
  readonly ended: Promise<number>
  /**
   * Resolves with the first line like this, said before or after now.
   *
   * @throws Error with all it said when it ends without
   */
  says(what: string | RegExp): Promise<string>
  signal(name: NodeJS.Signals): void
}

/** @param options.flags Node's own, such as `--expose-gc` */
export async function startNode(
  script: URL,
  args: readonly string[],
  options: { readonly flags?: readonly string[] } = {},
): Promise<NodeProcess> {
  const program = await compiled(script.pathname)
  const command = [process.execPath, ...(options.flags ?? []), '--enable-source-maps', program, ...args]
  const child = await startGuarded(command)
  const lines: string[] = []
  const waiting = new Set<(line: string) => void>()
  child.onLine((line) => {
    lines.push(line)
    for (const tell of waiting) tell(line)
  })
  return {
    pid: child.pid,
    lines,
    ended: child.ended,
    signal: (name) => child.signal(name),
    says: (what) => {
      const said = lines.find((line) => isLike(line, what))
      if (said !== undefined) return Promise.resolve(said)
      return new Promise((resolve, reject) => {
        waiting.add((line) => isLike(line, what) && resolve(line))
        void child.ended.then((code) => {
          reject(new Error(`the process ended (${code}) and did not say ${what}. It said:\n${lines.join('\n')}`))
        })
      })
    },
    [Symbol.asyncDispose]: () => killed(child),
  }
}

function isLike(line: string, what: string | RegExp): boolean {
  return typeof what === 'string' ? line === what : what.test(line)
}

async function killed(child: GuardedProcess): Promise<void> {
  child.signal('SIGKILL')
  await child.ended
}
