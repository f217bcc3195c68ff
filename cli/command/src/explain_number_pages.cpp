#include <array>

#include "explain_pages.hpp"

namespace remesh {
namespace {

constexpr std::array pages{
    Page{
        "RM501", "unchanged over steps", true,
        "What training changes is bit for bit the same as in the save before, though the step is a "
        "later one; or the step does not advance. As a note: some parameters did not change, or it "
        "is the same save.",
        "Either training stood still, or an old snapshot was saved under a new name: a run that "
        "resumes from it loses those steps.",
        "An asynchronous writer that saved an old copy; of some parameters: frozen ones.",
        "Compare with the losses of the run; go back to the last save that moved."},
    Page{"RM502", "step mismatch", true,
         "Parts of the training state are of different steps: files of the optimizer, its step "
         "tensors, trainer_state.json.",
         "Weights and optimizer state come from different moments.",
         "State that went on changing while it was saved.", "Use another save."},
    Page{"RM503", "zeroed moments", true,
         "The optimizer's moments are all zero at a step that is not the first, or were not in the "
         "save before; as a note, those of some parameters.",
         "The first steps after a resume go far astray.",
         "A resume that failed to load the optimizer and saved what it had; of some parameters: "
         "experts that no token was sent to.",
         "Use the last save before that resume."},
    Page{"RM504", "master against working copy", true,
         "Working weights are not the master weights, rounded to nearest, ties to even.",
         "After a resume the model is another one than the one that was evaluated.",
         "Masters of another step, or weights that were changed or cast without their masters.",
         "Decide which of the two is meant and write the other from it."},
    Page{"RM505", "negative exp_avg_sq", true,
         "A second moment, which is a mean of squares, is negative.",
         "The next step takes the root of it: NaN.",
         "Damaged bytes, or a tensor that was taken for another.",
         "Run `remesh verify` on the file, and use another copy."},
    Page{"RM511", "NaN, infinity, denormals or zeros", true,
         "A tensor has NaN or infinite elements, or more than half of those that are not zero are "
         "denormal, or, as a warning, a weight matrix is all zero.",
         "One NaN spreads over the whole model in one step; the others are seldom what training "
         "leaves.",
         "A run that diverged, or bytes that were never written. A warning may be harmless: fresh "
         "LoRA matrices are zero, and moments shrink where no gradient comes.",
         "Go back to the last save without them."},
    Page{"RM512", "range or histogram break", true,
         "A tensor's numbers are not what training makes of those in the save before: times a "
         "power of two, far beyond the largest, or zero or tiny where they were not.",
         "A step moves all elements of a weight by about as much; a jump of some, or of all, is "
         "not training.",
         "A file that was rewritten while it was mapped, a wrong scale, a flipped exponent bit.",
         "Go back to the save before it, or compare both with `remesh verify --against`."},
    Page{
        "RM521", "permuted rows", true,
        "The rows or columns of a tensor equal the reference's in another order.",
        "Every number is there, and the model talks nonsense after some tokens.",
        "A conversion without the permutation that rotary embeddings need, or with the parts of a "
        "fused tensor exchanged.",
        "Convert again, by what the finding calls the order (verify/README.md lists them): "
        "interleave: with the permutation for the rotary embedding of the model that is to read "
        "it, once; exchange_halves: with gate and up, or the halves of each head, as the reference "
        "has them; transpose_blocks: with fused parts joined whole, not rank by rank."},
    Page{"RM522", "query, key, value grouping", true,
         "A fused attention tensor holds its heads in other groups than the reference.",
         "Heads read each other's keys.",
         "A conversion that took q, k, v of each KV head, or of each rank, for all of q, all of k, "
         "all of v, or the reverse.",
         "Convert again with the groups of the reference; the finding says both groupings."},
    Page{"RM523", "transposed", true, "A tensor equals the reference's transpose.",
         "Where the shape is square nobody refuses it.",
         "A framework that stores the other way round.",
         "Convert again, and transpose it as the reference has it."},
    Page{"RM524", "swapped layers or experts", true,
         "Layers, experts or tensors equal the reference's under other numbers or names.",
         "Every tensor is sound, and the model is another one.",
         "Numbers that were local to a rank, text order in place of number order (10 before 2), or "
         "gate and up taken for each other.",
         "Layers and experts: convert again with the numbers of the reference. Tensors that "
         "changed places, as gate and up: convert again with the names that it has for these "
         "numbers. The finding names which is where."},
    Page{
        "RM531", "fp8 weight without scale", true,
        "A weight of 8-bit floats has no scale beside it. Where the model's map asks for one it is "
        "an error, else a warning.",
        "Without the scale the weights are hundreds of times too large.",
        "An export that knew only the weights.", "Export again together with the scales."},
    Page{"RM532", "magnitude", true,
         "A tensor is the reference's times a power of two, or its negative.",
         "A scale was applied twice, or not at all.",
         "A conversion between formats that store scales and their inverses, of fp8 most of all.",
         "Convert again; the finding names the ratio."},
    Page{"RM541", "vocabulary padding", true,
         "The embedding or the output has more rows than the vocabulary of config.json; an error "
         "where they are twice as many.",
         "Extra rows can be sampled as tokens; padding twice shifts nothing but wastes much.",
         "An export that kept the padding, or padded what was padded.",
         "Cut the rows after the vocabulary."},
    Page{"RM551", "tolerance exceeded", false, "Two checkpoints differ by more than was allowed.",
         "They are not the same within what rounding explains.",
         "Another order of summation, another step, or damage.",
         "Look at which tensors differ most."},
    Page{"RM601", "pickle global", false,
         "A pickle asks for a function that is not on the list of harmless ones.",
         "Loading it elsewhere runs code of its author's choice. remesh never runs any.",
         "An attack, or an object of a class that the trainer defined.",
         "Do not load the file elsewhere before you know why it asks for that."},
    Page{"RM602", "zip inconsistency", false,
         "The two tables of contents of a zip file contradict each other.",
         "Two programs that read it see different content.",
         "A damaged file, or one made to deceive a scanner.", "Get the file again."},
    Page{
        "RM603", "path escape", true,
        "A name inside the checkpoint is no plain file name, or a link leads out of it.",
        "It could make a reader open, or a writer replace, files outside the checkpoint.",
        "A checkpoint made on purpose, or absolute paths of the machine that wrote it.",
        "If you trust the links, copy the files themselves: `cp -rL`. Otherwise get the checkpoint "
        "from somebody you trust, or write it again."},
    Page{"RM604", "not a regular file", true,
         "What should be a file is a link, a device, a pipe or a directory.",
         "Reading it may never end, or may read what lies elsewhere.",
         "A cache that links to blobs, as the Hugging Face cache does.",
         "Copy the files themselves: `cp -rL`."},
    Page{"RM605", "size or limit", true,
         "A header, name or count is larger than any real checkpoint has.",
         "Reading it would take memory without bound.",
         "A damaged length, or a file made on purpose.",
         "Get the file again; the limits stand in the format's documentation."},
    Page{"RM606", "HDF5 external reference", true, "A shard refers to data outside itself.",
         "Its bytes are not covered by any digest, and may be any file of the machine.",
         "A shard that was edited with other tools.", "Write the checkpoint again with remesh."},
    Page{"RM607", "forbidden filter", true,
         "A dataset is packed with a filter that remesh does not use.",
         "Filters are plug-ins: they would be loaded and run.",
         "A shard that was repacked with other tools.",
         "Repack it without filters, or write the checkpoint again with remesh."},
    Page{"RM608", "duplicate key", true, "A JSON object of the checkpoint has the same key twice.",
         "Readers disagree on which one counts, so two of them see two checkpoints.",
         "A writer without checks, or a file made on purpose.",
         "Get the file again from its author."},
    Page{"RM611", "signature missing", true, "A signature was to be checked, but there is none.",
         "Nobody vouches for the checkpoint. The digests in it were written by whoever wrote it.",
         "It was written without signing, or the signature was left out of a copy or removed.",
         "Get the signature from the author of the checkpoint, or do not use it."},
    Page{"RM612", "signed by another key", true,
         "The signature names another key than the one that it was to be checked with.",
         "Anybody can make a key and sign with it; only the key that you trust says who it was.",
         "The wrong key, a key that its author replaced, or a checkpoint by somebody else.",
         "Compare both key ids with what the author says, and get the key by a way of its own."},
    Page{"RM701", "lock", true, "Another job holds the place where this one wants to write.",
         "Two writers would mix their files.", "The same command was started twice.",
         "Wait for the other job, or choose another destination."},
    Page{"RM702", "no space", true, "The file system has less space than the checkpoint needs.",
         "It would fail late, after all the work; so it fails before.", "A full disk or a quota.",
         "Free space, or write elsewhere; `remesh plan` says how much is needed."},
    Page{"RM703", "I/O", true, "The system refused to read, write or sync.",
         "What was not synced may be gone after a power failure.",
         "A failing medium, a lost network mount, or no directory where a file was to be written.",
         "Create the directory first, if that is missing; otherwise look at the system's log. "
         "Nothing that is not committed is ever taken for a checkpoint."},
    Page{"RM704", "peer lost", false, "Another worker of the job is gone.",
         "The job cannot end without it; it stops everywhere and publishes nothing.",
         "A node that failed, or a worker that was killed for its memory.", "Start the job again."},
    Page{"RM705", "memory budget", true, "The work does not fit into the memory that it may hold.",
         "It stops before it takes more than it was given.",
         "A small `--memory`, more threads than it has room for, or very many tensors.",
         "Give more with `--memory`, or use fewer `--threads`."},
    Page{"RM706", "not permitted", true,
         "The system does not let this user read or write a file or a directory.",
         "Nothing is known of what lies there: it may be whole.",
         "Files of another user, or copied without their modes; or a file system that is mounted "
         "to be read only.",
         "Run as a user who may, or change the modes; write elsewhere."},
};

}  // namespace

std::span<const Page> number_pages() { return pages; }

}  // namespace remesh
