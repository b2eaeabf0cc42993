/**
 * Reads the `.lua` and `.sql` files of this package. A file is read when it is first needed, and kept: a process that uses
 * neither Redis nor Postgres reads none.
 *
 * A line `--- @include "shared/name.lua"` is replaced by that file, which is named relative to the including file. A file is
 * included once, however many files include it.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { InvalidState } from './errors.ts'

const INCLUDE = /^--- @include "(.+)"$/gm
const PLACEHOLDER = /(?<![:\w]):([A-Z][A-Z_]*)/g

const texts = new Map<string, string>()

/**
 * Returns the text of a file, with its includes.
 *
 * @param module the `import.meta.url` of the module that needs the file
 * @param file the path of the file, relative to the module
 * @throws InvalidState if the file is missing, as in a bundle
 */
export function readScript(module: string, file: string): string {
  const key = `${module} ${file}`
  const text = texts.get(key) ?? withIncludes(module, file, new Set())
  texts.set(key, text)
  return text
}

/**
 * Returns the text of a file with values for its placeholders, which are written as `:NAME`.
 *
 * @example fillScript(import.meta.url, './tables.sql', { SCHEMA: 'jobboard' })
 * @throws InvalidState also for a placeholder without a value
 */
export function fillScript(module: string, file: string, values: Readonly<Record<string, string>>): string {
  return readScript(module, file).replace(PLACEHOLDER, (placeholder, name: string) => {
    const value = values[name]
    if (value === undefined) throw new InvalidState(`${file}: placeholder ${placeholder} has no value`)
    return value
  })
}

function withIncludes(from: string, file: string, included: Set<string>): string {
  const { url, text } = read(from, file)
  if (included.has(url)) return ''
  included.add(url)
  return text.replace(INCLUDE, (_, other: string) => withIncludes(url, other, included))
}

function read(from: string, file: string): { readonly url: string; readonly text: string } {
  try {
    const url = new URL(file, from)
    return { url: url.href, text: readFileSync(fileURLToPath(url), 'utf8') }
  } catch (cause) {
    throw new InvalidState(
      `cannot read ${file} beside ${from}: it is a file of the package jobboard, which bundlers do not copy; ` +
        'mark jobboard as external in the bundler, or install the package again',
      { cause },
    )
  }
}
