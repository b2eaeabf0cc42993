/** Keeps the process alive while it awaits something that has no socket. */
import { MAX_TIMER_MS } from '../time.ts'

/**
 * Keeps Node from ending an idle process, until the result is disposed.
 *
 * A board in memory holds no handle open. A process that waits for it in vain would not hang but exit: Node ends a process
 * whose `await` nothing can resolve, with exit code 13 and no message.
 *
 * @param held the awaited object, if others hold it weakly: it must not be collected while a caller waits for it
 */
export function keepAlive(held?: object): Disposable {
  const timer = setInterval(() => held, MAX_TIMER_MS)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
