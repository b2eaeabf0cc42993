/** The options with which a process of the tests runs TypeScript. */
export const TYPESCRIPT: readonly string[] = ['--import', new URL('./typescript-register.mjs', import.meta.url).href]
