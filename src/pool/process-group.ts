/** Sends signals to a child and to all processes that it has started. */
import { spawn } from 'node:child_process'

/**
 * Sends a signal to the process group of a child, which is its leader. On Windows ends the tree of processes instead, with any
 * signal. Does nothing if the group has ended.
 */
export function signalGroup(pid: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (process.platform === 'win32') {
    spawn('taskkill', ['/pid', String(pid), '/T', '/F'], { stdio: 'ignore' }).on('error', () => undefined)
    return
  }
  try {
    process.kill(-pid, signal)
  } catch {
    // The group has ended.
  }
}
