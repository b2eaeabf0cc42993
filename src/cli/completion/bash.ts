/** For bash, whatever of bash-completion is installed. */
import type { Branch, Flag } from './tree.ts'

export function bashScript(branches: readonly Branch[]): string {
  const values = valuesOf(branches)
  return `# jobboard completion for bash: source <(jobboard completion bash)
_jobboard() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="" path="" i each
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    each="\${COMP_WORDS[i]}"
    if [[ -n $before ]]; then before=""; continue; fi
    case "$each" in
      ${values.map((name) => name).join('|')}) before="$each" ;;
      -*) ;;
      *) case "$path $each" in
${branches
  .filter(({ path }) => path !== '')
  .map(({ path }) => `        ${quoted(`${parentOf(path)} ${lastOf(path)}`)}) path=${quoted(path)} ;;`)
  .join('\n')}
        esac ;;
    esac
  done
  if [[ -n $before ]]; then
    case "$path $before" in
${branches.flatMap((branch) => branch.options.flatMap((flag) => valueLines(branch, flag))).join('\n')}
    esac
    return
  fi
  case "$path" in
${branches.map(branchLine).join('\n')}
  esac
}
complete -F _jobboard jobboard
`
}

/** Options that a value follows, anywhere. */
function valuesOf(branches: readonly Branch[]): string[] {
  return [
    ...new Set(branches.flatMap(({ options }) => options.filter(({ takesValue }) => takesValue).flatMap(namesOf))),
  ]
}

function namesOf({ names }: Flag): readonly string[] {
  return names
}

function valueLines({ path }: Branch, { names, words, file }: Flag): string[] {
  if (!file && words.length === 0) return []
  const offer = file ? 'compgen -f -- "$word"' : `compgen -W ${quoted(words.join(' '))} -- "$word"`
  return names.map((name) => `      ${quoted(`${path} ${name}`)}) mapfile -t COMPREPLY < <(${offer}) ;;`)
}

function branchLine({ path, commands, options, words }: Branch): string {
  const plain = [...commands.map(({ name }) => name), ...words].join(' ')
  const flags = options.flatMap(namesOf).join(' ')
  const offer = `if [[ $word == -* ]]; then mapfile -t COMPREPLY < <(compgen -W ${quoted(flags)} -- "$word"); else mapfile -t COMPREPLY < <(compgen -W ${quoted(plain)} -- "$word"); fi`
  return `    ${quoted(path)}) ${offer} ;;`
}

function parentOf(path: string): string {
  return path.split(' ').slice(0, -1).join(' ')
}

function lastOf(path: string): string {
  return path.split(' ').at(-1) ?? ''
}

/** Names and words of ours have no quotes in them. */
function quoted(text: string): string {
  return `'${text}'`
}
