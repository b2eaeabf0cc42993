/**
 * Substitution of `${NAME}` in texts of the config file: secrets stay in the environment. `${NAME:-else}` has a
 * default.
 */

const REFERENCE = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{[^}]*\}?/g

/**
 * Replaces variables by their values in the environment; `$${` stands for a literal `${`.
 *
 * @param problem makes the error to throw from a message
 */
export function substituteVariables(
  text: string,
  env: Readonly<Record<string, string | undefined>>,
  problem: (message: string) => Error,
): string {
  return text.replaceAll(REFERENCE, (found: string, name: string | undefined, otherwise: string | undefined) => {
    if (found === '$${') return '${'
    if (name === undefined)
      throw problem(`write \${NAME}, the name of a variable in braces, or $\${ for the characters`)
    const value = env[name] || otherwise
    if (value !== undefined) return value
    throw problem(`the variable ${name} is not set; set it, or write \${${name}:-…} with a default`)
  })
}
