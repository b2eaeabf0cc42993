/** Replaces the variables of the environment in texts of `jobboard.yaml`. */
import type { CliContext } from '../../context.ts'

const REFERENCE = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{[^}]*\}?/g

/**
 * Replaces variables by their values in the environment; `$${` stands for a literal `${`.
 *
 * @param problem makes the error to throw from a message
 */
export function substituteVariables(text: string, env: CliContext['env'], problem: (message: string) => Error): string {
  return text.replaceAll(REFERENCE, (found: string, name: string | undefined, otherwise: string | undefined) => {
    if (found === '$${') return '${'
    if (name === undefined)
      throw problem(`write \${NAME}, the name of a variable in braces, or $\${ for the characters`)
    const value = env[name] || otherwise
    if (value !== undefined) return value
    throw problem(`the variable ${name} is not set; set it, or write \${${name}:-…} with a default`)
  })
}

/** Replaces variables in all texts of plain data. @throws as {@link substituteVariables} */
export function substituteDeep(value: unknown, replace: (text: string) => string): unknown {
  if (typeof value === 'string') return replace(value)
  if (Array.isArray(value)) return value.map((item) => substituteDeep(item, replace))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, substituteDeep(item, replace)]))
}
