import type { Json } from '../kernel/json.ts'
import type { Caller } from '../kernel/scope.ts'
import type { SchedulerContext } from './context.ts'
import type { SlotPreview } from './options.ts'
import { previewTarget, type HookInput } from './target-hooks.ts'

/** What the kinds of targets show besides the slots. Opens a transaction only if one of them shows something. */
export async function previewsOf(
  context: SchedulerContext,
  caller: Caller,
  plans: readonly { readonly input: HookInput | undefined; readonly slots: () => readonly SlotPreview[] }[],
): Promise<readonly (Json | undefined)[]> {
  const { targets } = context
  const hasPreview = (input: HookInput | undefined): input is HookInput =>
    input !== undefined && targets.get(input.target.kind)?.preview !== undefined
  if (!plans.some(({ input }) => hasPreview(input))) return []
  return context.transact(caller, async (tx) => {
    const previews: (Json | undefined)[] = []
    for (const { input, slots } of plans) {
      if (hasPreview(input)) {
        const instants = slots().map(({ scheduledFor }) => scheduledFor)
        previews.push(await previewTarget(tx, caller, { input, slots: instants }, context))
      } else previews.push(undefined)
    }
    return previews
  })
}

/** Adds the preview of the target's kind to a plan, if there is one. */
export function withPreview<Plan extends object>(
  plan: Plan,
  preview: Json | undefined,
): Plan & { readonly preview?: Json } {
  return preview === undefined ? plan : { ...plan, preview }
}
