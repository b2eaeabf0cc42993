/** The variables of the environment in texts of `jobboard.yaml`. */
import { REDACTED } from '../../../core/redaction.ts'
import type { CliContext } from '../../context.ts'

/** Names of variables whose values are hidden, wherever they stand. */
const SECRET_NAME = /PASS|SECRET|TOKEN|KEY|AUTH|CREDENTIAL|PRIVATE/i

/** Returns an environment in which what seems to be secret is hidden; a missing variable stays missing. */
export function maskSecrets(env: CliContext['env']): CliContext['env'] {
  return new Proxy(env, {
    get: (target, name) => {
      const value = target[String(name)]
      return value && SECRET_NAME.test(String(name)) ? REDACTED : value
    },
  })
}

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
