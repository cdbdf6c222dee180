"""The table of all commands and groups, from which the command line is built without importing them."""

from typing import NamedTuple


class Entry(NamedTuple):
    """A command or a group.

    Attributes
    ----------
    summary
        One line for the help.
    target
        Module and name of the command, as MODULE:NAME; "" for a group.
    examples
        Example lines of a group's help.
    """

    summary: str
    target: str = ""
    examples: tuple[str, ...] = ()


SECTIONS = {
    "Commands that most people need": ("demo", "manifest", "extract", "evaluate", "predict", "film", "store"),
    "More": (
        *("doctor", "weights", "slurm", "frames", "codebook", "search", "explain", "localise"),
        *("compare", "folds", "model"),
    ),
    "Papers": ("paper", "mobygaze", "audit", "task", "gradcam", "lm", "train"),
}
"""Title of a section of the first page of help -> its commands, the most needed first."""

COMMANDS = {
    "demo": Entry("Run the whole workflow on a small film corpus.", "obygaze.demo:demo"),
    "manifest": Entry(
        "Create and inspect manifests (tables of clips).",
        examples=(
            "  obygaze manifest import folder films --out films.csv",
            "  obygaze manifest stats films.csv",
        ),
    ),
    "manifest import": Entry(
        "Make a manifest from annotations or videos.",
        examples=(
            "  obygaze manifest import folder films --out films.csv",
            "  obygaze manifest import film film.mkv --window 46 --out windows.csv",
            "  obygaze manifest import obygaze12 ObyGaze12 --out obygaze12.csv",
        ),
    ),
    "manifest import folder": Entry(
        "Import a folder of videos.", "obygaze_features.commands.manifest_import:import_folder"
    ),
    "manifest import images": Entry(
        "Import a folder of still images.", "obygaze_features.commands.manifest_import:import_images"
    ),
    "manifest import film": Entry(
        "Cut films into windows or scenes.", "obygaze_features.commands.manifest_film:film"
    ),
    "manifest import spans": Entry(
        "Import annotations, judgements, subtitles, tables.",
        "obygaze_features.commands.manifest_import:spans",
    ),
    "manifest import obygaze12": Entry(
        "Import ObyGaze12's annotations.", "obygaze_studies.commands.import_commands:import_obygaze12"
    ),
    "manifest import mobygaze": Entry(
        "Import MObyGaze's segments.", "obygaze_studies.commands.import_commands:import_mobygaze"
    ),
    "manifest import mediaeval15": Entry(
        "Import the clips of MediaEval 2015.", "obygaze_studies.commands.import_commands:import_mediaeval15"
    ),
    "manifest inspect": Entry(
        "Check a manifest and print what it contains.", "obygaze_features.commands.manifest_inspect:inspect"
    ),
    "manifest project": Entry(
        "Project free annotations onto clips.", "obygaze_features.commands.manifest_inspect:project"
    ),
    "manifest agreement": Entry(
        "Measure gamma agreement between annotators.", "obygaze_models.commands.annotation_commands:agreement"
    ),
    "manifest disagreements": Entry(
        "Count how two annotators differ, by film.",
        "obygaze_models.commands.annotation_commands:disagreements",
    ),
    "manifest alttest": Entry(
        "Test whether a machine may stand in for an annotator.",
        "obygaze_models.commands.annotation_commands:alttest",
    ),
    "manifest assign": Entry(
        "Assign films to annotators.", "obygaze_features.commands.manifest_rounds:assign"
    ),
    "manifest progress": Entry(
        "Show how much of a round is annotated, and who drifts.",
        "obygaze_models.commands.round_commands:progress",
    ),
    "manifest rank": Entry(
        "Rank clips by pairwise judgements of workers.", "obygaze_models.commands.round_commands:rank"
    ),
    "manifest stats": Entry("Count levels and concepts.", "obygaze_studies.commands.stats_command:stats"),
    "manifest sheets": Entry(
        "Draw contact sheets per concept or kind of error.",
        "obygaze_features.commands.manifest_inspect:sheets",
    ),
    "codebook": Entry(
        "Show, check and write codebooks (levels, concepts, tasks).",
        examples=(
            "  obygaze codebook show obygaze12",
            "  obygaze codebook init --out mine.toml",
        ),
    ),
    "codebook show": Entry(
        "Show a codebook: built-in, of a file or of a manifest.",
        "obygaze_features.commands.codebook_commands:show",
    ),
    "codebook check": Entry("Check a codebook file.", "obygaze_features.commands.codebook_commands:check"),
    "codebook init": Entry(
        "Write a commented template of a codebook.", "obygaze_features.commands.codebook_commands:init"
    ),
    "codebook guess": Entry(
        "Draft a codebook from a table's words.", "obygaze_features.commands.codebook_commands:guess"
    ),
    "codebook texts": Entry(
        "Write the texts of a codebook's concepts.", "obygaze_features.commands.codebook_commands:texts"
    ),
    "codebook questions": Entry(
        "Write yes-or-no questions about clips for a model.",
        "obygaze_features.commands.codebook_commands:questions",
    ),
    "codebook template": Entry(
        "Write blank ELAN documents to annotate films in.",
        "obygaze_features.commands.codebook_commands:template",
    ),
    "doctor": Entry(
        "Check what this machine is ready for.",
        "obygaze_features.commands.doctor_command:doctor",
    ),
    "slurm": Entry(
        "Write job scripts for Slurm.",
        examples=("  obygaze slurm init jobs --licence CC-BY-4.0 --sbatch partition=gpu",),
    ),
    "slurm init": Entry(
        "Write job scripts with your site's options filled in.",
        "obygaze_features.commands.slurm_commands:init",
    ),
    "frames": Entry(
        "Show or save the frames an extraction would use.", "obygaze_features.commands.frames_command:frames"
    ),
    "extract": Entry(
        "Extract features of clips into a store.", "obygaze_features.commands.extract_command:extract"
    ),
    "train": Entry("Re-train a backbone.", examples=("  obygaze train xclip-lsmdc --help",)),
    "train xclip-lsmdc": Entry(
        "Train X-CLIP on LSMDC, starting from CLIP.", "obygaze_studies.commands.train_command:xclip_lsmdc"
    ),
    "gradcam": Entry(
        "Compute Grad-CAM maps for still images.", "obygaze_studies.commands.gradcam_command:gradcam"
    ),
    "store": Entry(
        "List, inspect, seal, verify, share and combine stores.",
        examples=(
            "  obygaze store ls",
            "  obygaze store verify stores/films --full",
        ),
    ),
    "store ls": Entry("List the stores in a folder.", "obygaze_features.commands.store_commands:ls"),
    "store inspect": Entry(
        "Show what a store contains and how it was made.", "obygaze_features.commands.store_commands:inspect"
    ),
    "store seal": Entry(
        "Turn a stage into a store that never changes.", "obygaze_features.commands.store_commands:seal"
    ),
    "store verify": Entry(
        "Check a store against its digests.", "obygaze_features.commands.store_commands:verify"
    ),
    "store duplicates": Entry(
        "Find clips that look alike.", "obygaze_features.commands.store_duplicates:duplicates"
    ),
    "store diff": Entry(
        "Report differences between two stores.", "obygaze_features.commands.store_combine:diff"
    ),
    "store merge": Entry(
        "Merge the clips of several stores into one.", "obygaze_features.commands.store_combine:merge"
    ),
    "store import": Entry(
        "Import features from other tools.", "obygaze_features.commands.store_exchange:import_"
    ),
    "store export": Entry(
        "Write features as HDF5 or AnnData.", "obygaze_features.commands.store_exchange:export"
    ),
    "store card": Entry(
        "Write a store's dataset card anew.", "obygaze_features.commands.store_exchange:card"
    ),
    "store cite": Entry(
        "Print a reference and a BibTeX entry for a store.", "obygaze_features.commands.store_exchange:cite"
    ),
    "store pack": Entry("Pack a store into one zip file.", "obygaze_features.commands.store_transfer:pack"),
    "store unpack": Entry(
        "Unpack a zip file into a folder.", "obygaze_features.commands.store_transfer:unpack"
    ),
    "store pull": Entry("Download a store or part of it.", "obygaze_features.commands.store_transfer:pull"),
    "store push": Entry("Upload a store.", "obygaze_features.commands.store_transfer:push"),
    "store rm": Entry("Remove stores and stages.", "obygaze_features.commands.store_commands:rm"),
    "weights": Entry(
        "Download, verify, check and convert network weights.",
        examples=(
            "  obygaze weights fetch xclip",
            "  obygaze weights verify pytorch_model.bin.4 --sha256 9f86d081...",
        ),
    ),
    "weights check": Entry(
        "Check that features can be extracted with a network.",
        "obygaze_features.commands.weights_commands:check",
    ),
    "weights convert": Entry(
        "Convert the person detector MoveNet to an ONNX file.",
        "obygaze_features.commands.weights_commands:convert",
    ),
    "weights fetch": Entry(
        "Download weights from the Hugging Face Hub and print their commit.",
        "obygaze_features.commands.weights_commands:fetch",
    ),
    "weights verify": Entry(
        "Compare the digest of a weight file with a known one.",
        "obygaze_features.commands.weights_commands:verify",
    ),
    "search": Entry("Find clips of a store by a text or a clip.", "obygaze_features.commands.search:search"),
    "lm": Entry("Score texts with a causal language model.", "obygaze_studies.commands.lm_command:lm"),
    "folds": Entry("List the clips of each fold.", "obygaze_studies.commands.folds_command:folds"),
    "evaluate": Entry(
        "Evaluate models by leave-one-movie-out.", "obygaze_models.commands.evaluate_commands:evaluate"
    ),
    "compare": Entry(
        "Compare two models on the same movies.", "obygaze_models.commands.evaluate_commands:compare"
    ),
    "paper": Entry(
        "Reproduce tables and figures of Tores et al., CVPR 2024.",
        examples=(
            "  obygaze paper all obygaze12.csv stores/xclip --out paper",
            "  obygaze paper all obygaze12.csv stores/xclip --only table2 --out table2",
        ),
    ),
    "paper claims": Entry(
        "Test sentences of the papers against released data.",
        "obygaze_studies.commands.paper_commands:claims",
    ),
    "paper all": Entry(
        "Reproduce all tables and figures of section 4 and its appendices.",
        "obygaze_studies.commands.paper_commands:all_",
    ),
    "paper figure4": Entry(
        "Draw Figure 4 of arXiv 2401.13296: how the annotations of a film become labels of clips.",
        "obygaze_studies.commands.paper_commands:figure4",
    ),
    "mobygaze": Entry(
        "Evaluate modalities and experts of MObyGaze.", "obygaze_studies.commands.mobygaze_command:mobygaze"
    ),
    "audit": Entry(
        "Audit embeddings, captions and saliency for bias.", "obygaze_studies.commands.audit_commands:audit"
    ),
    "task": Entry(
        "Run benchmark tasks of related papers.", examples=("  obygaze task mediaeval15 score --help",)
    ),
    "task mediaeval15": Entry(
        "Run MediaEval 2015 Affective Impact of Movies.",
        examples=("  obygaze task mediaeval15 check --help",),
    ),
    "task mediaeval15 labels": Entry(
        "Convert valence and arousal scores to classes.",
        "obygaze_studies.commands.mediaeval15_commands:labels",
    ),
    "task mediaeval15 train": Entry(
        "Train on the dev clips and predict the test clips.",
        "obygaze_studies.commands.mediaeval15_commands:train",
    ),
    "task mediaeval15 score": Entry(
        "Score runs with the official measures: average precision as in trec_eval, and accuracy.",
        "obygaze_studies.commands.mediaeval15_commands:score",
    ),
    "task mediaeval15 check": Entry(
        "Check a folder of runs against the rules of the task.",
        "obygaze_studies.commands.mediaeval15_commands:check",
    ),
    "film": Entry(
        "Score whole films; compare the scores with people.",
        examples=(
            "  obygaze film run film.mkv --model run/pcbm_lr.model --out scored",
            "  obygaze film score run/pcbm_lr.model stores/film --out scored",
            "  obygaze film report scored --out film.html",
        ),
    ),
    "film run": Entry("Cut, extract, score and show films in one go.", "obygaze.film_run:run"),
    "film variables": Entry(
        "Measure sound, cuts, camera and people by window.",
        "obygaze_features.commands.film_variables:variables",
    ),
    "film score": Entry("Score the windows of films in a store.", "obygaze_film.commands.film_score:score"),
    "film report": Entry("Write a page of scored films.", "obygaze_film.commands.film_output:report"),
    "film export": Entry(
        "Write a scored film for ELAN, players, editors.", "obygaze_film.commands.film_output:export"
    ),
    "film import": Entry(
        "Import annotations into a scored film's ledger.", "obygaze_film.commands.film_import:import_"
    ),
    "film evaluate": Entry(
        "Compare scored films with annotations.", "obygaze_film.commands.film_score:evaluate"
    ),
    "film next": Entry("Choose the windows to judge next.", "obygaze_film.commands.film_judgements:next_"),
    "film rate": Entry(
        "Estimate a film's rate from blind judgements.", "obygaze_film.commands.film_judgements:rate"
    ),
    "film compare": Entry(
        "Compare groups of films, with a trend.", "obygaze_film.commands.film_judgements:compare"
    ),
    "film open": Entry("Work on scored films in the browser.", "obygaze_film.commands.film_open:open_"),
    "film learn": Entry(
        "Train on judgements of scored films.", "obygaze_film.commands.film_judgements:learn"
    ),
    "predict": Entry(
        "Score clips of stores with a saved model.", "obygaze_models.commands.predict_commands:predict"
    ),
    "explain": Entry(
        "Explain a concept model's decision on a clip.", "obygaze_models.commands.predict_commands:explain"
    ),
    "localise": Entry(
        "Compare frames' scores with marked segments.", "obygaze_models.commands.predict_commands:localise"
    ),
    "model": Entry(
        "List, share, verify and inspect models.",
        examples=(
            "  obygaze model ls",
            "  obygaze model card models/pcbm_lr.model",
        ),
    ),
    "model ls": Entry("List the models of a list (zoo.toml).", "obygaze_models.commands.model_commands:ls"),
    "model card": Entry("Print a model's page.", "obygaze_models.commands.model_commands:card"),
    "model verify": Entry("Check the models of a list.", "obygaze_models.commands.model_commands:verify"),
    "model push": Entry("Put a model into a list.", "obygaze_models.commands.model_commands:push"),
    "model pull": Entry("Copy a model of a list.", "obygaze_models.commands.model_commands:pull"),
    "model sums": Entry(
        "Compute sums over a lab's films for a joint model.", "obygaze_models.commands.joint_commands:sums"
    ),
    "model units": Entry(
        "Learn units of frames without labels.", "obygaze_models.commands.unit_commands:units"
    ),
    "model join": Entry(
        "Fit a joint model to the sums of several labs.", "obygaze_models.commands.joint_commands:join"
    ),
}
