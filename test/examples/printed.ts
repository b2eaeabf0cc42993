/** Runs an example in this process: a process of its own would take longer to start than most examples to run. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { format } from 'node:util'
import { vi } from 'vitest'
import { ROOT } from '../support/build.ts'

/** What the example prints, on either stream, line by line. What its processes print goes past this. */
export async function printedBy(name: string): Promise<string> {
  let printed = ''
  const print = (...values: readonly unknown[]) => {
    printed += `${format(...values)}\n`
  }
  const log = vi.spyOn(console, 'log').mockImplementation(print)
  const error = vi.spyOn(console, 'error').mockImplementation(print)
  try {
    await import(join(ROOT, 'examples', name, 'main.ts'))
  } finally {
    log.mockRestore()
    error.mockRestore()
  }
  return printed
}

export function outputOf(name: string): Promise<string> {
  return readFile(join(ROOT, 'examples', name, 'output.txt'), 'utf8')
}
